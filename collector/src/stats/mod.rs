//! Robust statistics on short series, none of which knows what the numbers mean.

mod change_point;
mod mann_kendall;
mod normal;
mod theil_sen;

pub(crate) use change_point::change_point;
pub(crate) use mann_kendall::{Trend, mann_kendall};
pub(crate) use theil_sen::{Slope, theil_sen};

/// The median; `None` of nothing. Reorders `values`.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if below.len() == middle && values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = values[..middle].iter().copied().max_by(f64::total_cmp);
    Some(lower.map_or(upper, |lower| (lower + upper) / 2.0))
}

#[cfg(test)]
pub(crate) mod noise {
    //! Pseudo-random series with known truth.

    /// xorshift64*: enough for test series.
    pub struct Noise(pub u64);

    impl Noise {
        pub fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Standard normal (Box and Muller 1958).
        pub fn normal(&mut self) -> f64 {
            let (u, v) = (self.uniform().max(1e-300), self.uniform());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&mut [7.0]), Some(7.0));
        assert_eq!(median(&mut []), None);
    }
}
