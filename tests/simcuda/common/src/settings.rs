//! The simulated machine, as the environment describes it.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `SIMCUDA_DEVICES` | number of devices, 1..=16 | 1 |
//! | `SIMCUDA_MEM` | capacity of each device, bytes or `80G`, `512M` | 80G |
//! | `SIMCUDA_MEM_<n>` | capacity of device n | `SIMCUDA_MEM` |
//! | `SIMCUDA_CONTEXT_MEM` | taken from a device by a process's first context | 0 |
//! | `SIMCUDA_CAPABILITY` | compute capability | 8.0 |
//! | `SIMCUDA_NAME` | device name | SimCUDA A100-SXM4-80GB |
//! | `SIMCUDA_DRIVER_VERSION` | as `cuDriverGetVersion` says it | 13020 |
//! | `SIMCUDA_ZERO_SCALARS` | copies of at most 8 bytes to the host give zero | 1 |
//! | `SIMCUDA_GROUP` | processes of one name share their devices' capacity | none |
//! | `CUDA_VISIBLE_DEVICES` | as the real driver reads it (indices, `GPU-` UUIDs) | all |

use std::fmt;

/// The most devices that a machine can have.
pub const MAX_DEVICES: usize = 16;

/// One simulated device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// Index on the machine, whatever `CUDA_VISIBLE_DEVICES` makes of it.
    pub index: usize,
    pub name: String,
    /// Capacity in bytes.
    pub memory: u64,
    /// Compute capability (major, minor).
    pub capability: (i32, i32),
    pub uuid: [u8; 16],
}

/// The simulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// All devices of the machine.
    pub devices: Vec<DeviceSettings>,
    /// Indices of those that the process may see, in its order.
    pub visible: Vec<usize>,
    pub driver_version: i32,
    pub context_memory: u64,
    pub zero_scalars: bool,
    pub group: Option<String>,
}

/// A variable with a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    pub variable: String,
    pub value: String,
    pub expected: &'static str,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={:?} is not {}",
            self.variable, self.value, self.expected
        )
    }
}

impl std::error::Error for BadSetting {}

impl Settings {
    /// Reads the settings of this process.
    pub fn from_env() -> Result<Self, BadSetting> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the settings through `variable`, which gives a variable's value.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadSetting> {
        let read = |name: &str, expected: &'static str| Reader {
            name: name.to_owned(),
            value: variable(name),
            expected,
        };
        let count = read("SIMCUDA_DEVICES", "a number from 1 to 16")
            .parse(|text| text.parse().ok().filter(|n| (1..=MAX_DEVICES).contains(n)))?
            .unwrap_or(1);
        const SIZE: &str = "a size such as 85899345920, 80G or 512M";
        let memory = read("SIMCUDA_MEM", SIZE)
            .parse(parse_size)?
            .unwrap_or(80 << 30);
        let capability = read("SIMCUDA_CAPABILITY", "a compute capability such as 8.0")
            .parse(parse_capability)?
            .unwrap_or((8, 0));
        let name = variable("SIMCUDA_NAME").unwrap_or_else(|| "SimCUDA A100-SXM4-80GB".to_owned());
        let devices = (0..count)
            .map(|index| {
                let own = read(&format!("SIMCUDA_MEM_{index}"), SIZE).parse(parse_size)?;
                Ok(DeviceSettings {
                    index,
                    name: name.clone(),
                    memory: own.unwrap_or(memory),
                    capability,
                    uuid: device_uuid(index),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let visible = visible_devices(variable("CUDA_VISIBLE_DEVICES").as_deref(), count);
        Ok(Self {
            visible,
            devices,
            driver_version: read("SIMCUDA_DRIVER_VERSION", "a number such as 13020")
                .parse(|text| text.parse().ok())?
                .unwrap_or(13020),
            context_memory: read("SIMCUDA_CONTEXT_MEM", SIZE)
                .parse(parse_size)?
                .unwrap_or(0),
            zero_scalars: read("SIMCUDA_ZERO_SCALARS", "0 or 1")
                .parse(|text| match text {
                    "0" => Some(false),
                    "1" => Some(true),
                    _ => None,
                })?
                .unwrap_or(true),
            group: variable("SIMCUDA_GROUP"),
        })
    }
}

struct Reader {
    name: String,
    value: Option<String>,
    expected: &'static str,
}

impl Reader {
    fn parse<T>(self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, BadSetting> {
        let Some(value) = self.value else {
            return Ok(None);
        };
        match parse(value.trim()) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(BadSetting {
                variable: self.name,
                value,
                expected: self.expected,
            }),
        }
    }
}

/// `1234`, `80G`, `80GiB`, `1.5g`: bytes; the units are powers of 1024.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..]
        .to_ascii_lowercase()
        .trim_end_matches("ib")
        .trim_end_matches('b')
    {
        "" => 1_u64,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let fraction: f64 = digits
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
    Some((fraction * unit as f64) as u64)
}

fn parse_capability(text: &str) -> Option<(i32, i32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A UUID that is the same in every process and on every run.
fn device_uuid(index: usize) -> [u8; 16] {
    let mut uuid = *b"SIMCUDA\x01\x80\0\0\0\0\0\0\0";
    uuid[15] = index as u8;
    uuid
}

/// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, as NVML writes it.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// The driver's rule: the list counts up to its first invalid entry.
fn visible_devices(list: Option<&str>, count: usize) -> Vec<usize> {
    let Some(list) = list else {
        return (0..count).collect();
    };
    let mut visible = Vec::new();
    for entry in list.split(',') {
        let entry = entry.trim();
        let index = entry
            .parse::<usize>()
            .ok()
            .filter(|&index| index < count)
            .or_else(|| {
                (entry.len() >= 8).then(|| {
                    (0..count).find(|&index| uuid_text(&device_uuid(index)).starts_with(entry))
                })?
            });
        match index {
            Some(index) if !visible.contains(&index) => visible.push(index),
            _ => break,
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, BadSetting> {
        Settings::from_variables(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn sizes_are_bytes_or_have_a_binary_unit() {
        assert_eq!(parse_size("1234"), Some(1234));
        assert_eq!(parse_size("80G"), Some(80 << 30));
        assert_eq!(parse_size("512MiB"), Some(512 << 20));
        assert_eq!(parse_size("1.5g"), Some(3 << 29));
        assert_eq!(parse_size("80X"), None);
        assert_eq!(parse_size("-1"), None);
        assert_eq!(parse_size(""), None);
    }

    #[test]
    fn a_device_can_have_a_capacity_of_its_own() {
        let settings = settings(&[
            ("SIMCUDA_DEVICES", "2"),
            ("SIMCUDA_MEM", "1G"),
            ("SIMCUDA_MEM_1", "2G"),
        ]);
        let memory: Vec<u64> = settings
            .expect("valid")
            .devices
            .iter()
            .map(|device| device.memory)
            .collect();
        assert_eq!(memory, [1 << 30, 2 << 30]);
    }

    #[test]
    fn a_bad_value_names_its_variable() {
        let error = settings(&[("SIMCUDA_DEVICES", "17")]).expect_err("17 devices are too many");
        assert_eq!(error.variable, "SIMCUDA_DEVICES");
    }

    #[test]
    fn the_visible_list_ends_at_its_first_invalid_entry() {
        assert_eq!(visible_devices(None, 2), [0, 1]);
        assert_eq!(visible_devices(Some("1,0"), 2), [1, 0]);
        assert_eq!(visible_devices(Some("0,7,1"), 2), [0]);
        assert_eq!(visible_devices(Some(""), 2), [] as [usize; 0]);
        assert_eq!(visible_devices(Some("-1"), 2), [] as [usize; 0]);
        let second = uuid_text(&device_uuid(1));
        assert_eq!(visible_devices(Some(&second), 2), [1]);
    }
}
