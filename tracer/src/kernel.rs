//! What the kernel and our own rights allow: one check a precondition, each with its exact remedy.

use std::{fmt, fs, path::Path};

use nix::{sys::utsname::uname, unistd::geteuid};

/// A capability that attaching needs, with its number (linux/capability.h).
const CAPABILITIES: [(&str, u32, &str); 3] = [
    ("CAP_BPF", 39, "load the BPF programs"),
    ("CAP_PERFMON", 38, "place uprobes and read memory from BPF"),
    (
        "CAP_SYS_PTRACE",
        19,
        "read the target's maps, files and memory",
    ),
];

/// The oldest kernel whose verifier has `bpf_loop`.
const OLDEST_KERNEL: (u32, u32) = (5, 17);
/// The oldest kernel with sleepable uprobes.
const SLEEPABLE_KERNEL: (u32, u32) = (6, 0);

/// How a precondition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds.
    Good,
    /// It works, with less.
    Reduced,
    /// Attaching cannot work.
    Missing,
}

/// One precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is checked, in a few words.
    pub name: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// The value found.
    pub found: String,
    /// What to do, as a command where there is one; empty where all is well.
    pub remedy: String,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.found)?;
        if !self.remedy.is_empty() {
            write!(f, "\n  {}", self.remedy)?;
        }
        Ok(())
    }
}

/// All preconditions of attaching with eBPF, whatever the target.
pub fn checks() -> Vec<Check> {
    vec![
        architecture(),
        kernel_version(),
        rights(),
        btf(Path::new("/sys/kernel/btf/vmlinux")),
        uprobes(Path::new("/sys/bus/event_source/devices/uprobe/type")),
        lockdown(Path::new("/sys/kernel/security/lockdown")),
    ]
}

fn architecture() -> Check {
    let found = std::env::consts::ARCH;
    let good = found == "x86_64";
    Check {
        name: "processor",
        standing: if good {
            Standing::Good
        } else {
            Standing::Missing
        },
        found: found.into(),
        remedy: if good {
            String::new()
        } else {
            "only x86_64 is supported: the probes read its argument registers".into()
        },
    }
}

fn kernel_version() -> Check {
    let release = uname().map_or_else(
        |error| format!("unknown ({error})"),
        |name| name.release().to_string_lossy().into_owned(),
    );
    let (standing, remedy) = match parse_release(&release) {
        Some(version) if version >= SLEEPABLE_KERNEL => (Standing::Good, String::new()),
        Some(version) if version >= OLDEST_KERNEL => (
            Standing::Reduced,
            "before 6.0 uprobes cannot wait for memory that is swapped out or on the move: a few \
             stacks may stay unread, and are counted"
                .into(),
        ),
        Some(_) => (
            Standing::Missing,
            format!(
                "Linux {}.{} or later is needed (bpf_loop); upgrade the kernel",
                OLDEST_KERNEL.0, OLDEST_KERNEL.1
            ),
        ),
        None => (Standing::Reduced, "its version could not be read".into()),
    };
    Check {
        name: "kernel",
        standing,
        found: release,
        remedy,
    }
}

fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn rights() -> Check {
    let uid = geteuid().as_raw();
    let effective = fs::read_to_string("/proc/self/status")
        .ok()
        .as_deref()
        .and_then(effective_capabilities)
        .unwrap_or(0);
    rights_of(uid, effective)
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("CapEff:"))?;
    u64::from_str_radix(line["CapEff:".len()..].trim(), 16).ok()
}

fn rights_of(uid: u32, effective: u64) -> Check {
    let missing: Vec<_> = CAPABILITIES
        .iter()
        .filter(|(_, number, _)| effective & (1 << number) == 0)
        .collect();
    if missing.is_empty() {
        return Check {
            name: "rights",
            standing: Standing::Good,
            found: format!("uid {uid} with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"),
            remedy: String::new(),
        };
    }
    let list = missing
        .iter()
        .map(|(name, _, use_)| format!("{name} (to {use_})"))
        .collect::<Vec<_>>()
        .join(", ");
    let disabled = fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled")
        .map_or_else(|_| "not readable".into(), |value| value.trim().to_owned());
    let remedy = if uid == 0 {
        "root without these capabilities: a container that dropped them. Start it with \
         `--cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE`, or run vramscope on the host"
            .to_owned()
    } else {
        "run it with sudo: `sudo env \"PATH=$PATH\" vramscope …`, or give the program the \
         capabilities once: `sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep \
         \"$(command -v vramscope)\"`"
            .to_owned()
    };
    Check {
        name: "rights",
        standing: Standing::Missing,
        found: format!("uid {uid} lacks {list}; kernel.unprivileged_bpf_disabled = {disabled}"),
        remedy,
    }
}

fn btf(path: &Path) -> Check {
    match fs::metadata(path) {
        Ok(metadata) => Check {
            name: "BTF",
            standing: Standing::Good,
            found: format!("{} ({} bytes)", path.display(), metadata.len()),
            remedy: String::new(),
        },
        Err(error) => Check {
            name: "BTF",
            standing: Standing::Missing,
            found: format!("{}: {error}", path.display()),
            remedy: "the kernel must be built with CONFIG_DEBUG_INFO_BTF=y, as the kernels of \
                     Debian 11+, Ubuntu 20.10+, RHEL 8.2+ and their kin are: `zgrep \
                     DEBUG_INFO_BTF /proc/config.gz /boot/config-$(uname -r)`"
                .into(),
        },
    }
}

fn uprobes(path: &Path) -> Check {
    match fs::read_to_string(path) {
        Ok(kind) => Check {
            name: "uprobes",
            standing: Standing::Good,
            found: format!("perf event type {}", kind.trim()),
            remedy: String::new(),
        },
        Err(error) => Check {
            name: "uprobes",
            standing: Standing::Missing,
            found: format!("{}: {error}", path.display()),
            remedy: "the kernel must be built with CONFIG_UPROBE_EVENTS=y and \
                     CONFIG_BPF_EVENTS=y; in a container, /sys must be mounted"
                .into(),
        },
    }
}

fn lockdown(path: &Path) -> Check {
    let state = fs::read_to_string(path).unwrap_or_default();
    let locked = state.contains("[confidentiality]");
    Check {
        name: "lockdown",
        standing: if locked {
            Standing::Missing
        } else {
            Standing::Good
        },
        found: match state.trim() {
            "" => "none".into(),
            state => state.to_owned(),
        },
        remedy: if locked {
            "in confidentiality mode the kernel lets no BPF program read its memory; boot with \
             `lockdown=integrity` (with Secure Boot: disable it or the distribution's lockdown)"
                .into()
        } else {
            String::new()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert_eq!(parse_release("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(parse_release("5.15.0-91-generic"), Some((5, 15)));
        assert_eq!(parse_release("rolling"), None);
    }

    #[test]
    fn missing_rights_are_named_with_the_way_out() {
        let check = rights_of(1000, 1 << 39);
        assert_eq!(check.standing, Standing::Missing);
        assert!(
            check.found.contains("uid 1000 lacks CAP_PERFMON"),
            "{check}"
        );
        assert!(!check.found.contains("CAP_BPF"), "{check}");
        assert!(check.remedy.contains("sudo"), "{check}");
        assert!(rights_of(0, 0).remedy.contains("--cap-add BPF"));
        assert_eq!(rights_of(0, u64::MAX).standing, Standing::Good);
    }

    #[test]
    fn capabilities_are_read_from_status() {
        let status = "Name:\tx\nCapPrm:\t0\nCapEff:\t000001fffeffff\n";
        assert_eq!(effective_capabilities(status), Some(0x1_fffe_ffff));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn absent_kernel_features_are_told() {
        let nowhere = Path::new("/nonexistent");
        assert_eq!(btf(nowhere).standing, Standing::Missing);
        assert_eq!(uprobes(nowhere).standing, Standing::Missing);
        assert_eq!(lockdown(nowhere).standing, Standing::Good);
    }
}
