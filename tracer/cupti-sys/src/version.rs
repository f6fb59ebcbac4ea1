//! Which CUPTI it is, and what it can do.

use std::fmt;

/// What `cuptiGetVersion` says: a counter up to 28 (CUDA 12.9), then `xxyyzz` for CUDA xx.yy with
/// update zz of CUPTI (13.0 is 130000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

/// Counters and the CUDA releases that they came with (`cupti_version.h`).
const COUNTED: [(u32, &str); 11] = [
    (17, "11.6"),
    (18, "11.8"),
    (19, "12.0"),
    (20, "12.2"),
    (21, "12.3"),
    (22, "12.4"),
    (23, "12.5"),
    (24, "12.6"),
    (26, "12.8"),
    (27, "12.9"),
    (28, "12.9 update 1"),
];

impl Version {
    /// The first that tells who holds the subscription.
    pub const NAMES_HOLDER: Self = Self(130_000);
    /// The first in which several subscribers can live side by side, with a driver that can too.
    pub const SEVERAL_SUBSCRIBERS: Self = Self(130_200);
    /// The first that tells which library allocates.
    pub const ALLOCATION_SOURCE: Self = Self(24);
    /// The first whose `cuptiFinalize` is safe where CUDA graphs are in use.
    pub const FINALIZE_WITH_GRAPHS: Self = Self(24);

    /// The CUDA release that it came with.
    pub fn cuda(self) -> String {
        let Self(number) = self;
        if number >= Self::NAMES_HOLDER.0 {
            return format!("{}.{}", number / 10_000, number / 100 % 100);
        }
        COUNTED
            .iter()
            .find(|(counter, _)| *counter == number)
            .map_or_else(
                || format!("unknown (version {number})"),
                |(_, release)| (*release).to_owned(),
            )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUPTI {} of CUDA {}", self.0, self.cuda())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn both_ways_of_counting_are_known() {
        assert_eq!(Version(18).to_string(), "CUPTI 18 of CUDA 11.8");
        assert_eq!(Version(130_501).to_string(), "CUPTI 130501 of CUDA 13.5");
        assert_eq!(Version(25).cuda(), "unknown (version 25)");
        assert!(Version(28) < Version::NAMES_HOLDER);
    }
}
