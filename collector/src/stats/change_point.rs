//! Where a series settles: the split that two straight lines explain best.

/// Values on each side of a split.
const MIN_SIDE: usize = 5;

/// Index of the first value of the second regime, when two lines explain the series clearly better
/// than one: the squared error falls by more than the Bayesian information criterion (Schwarz
/// 1978) asks for three more parameters. O(n) by prefix sums.
pub(crate) fn change_point(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < 2 * MIN_SIDE {
        return None;
    }
    let sums = Sums::new(values);
    let whole = sums.error(0, n);
    let split = (MIN_SIDE..=n - MIN_SIDE)
        .map(|at| (at, sums.error(0, at) + sums.error(at, n)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    // Rounding of the sums, relative to the spread.
    let least = (whole * 1e-9).max(f64::MIN_POSITIVE);
    let gain = n as f64 * (whole.max(least) / split.1.max(least)).ln();
    (gain > 3.0 * (n as f64).ln() + 6.0).then_some(split.0)
}

/// Prefix sums of 1, x, y, xx, xy, yy with x and y moved to their middle.
struct Sums {
    sums: Vec<[f64; 5]>,
}

impl Sums {
    fn new(values: &[f64]) -> Sums {
        let middle = values.iter().sum::<f64>() / values.len() as f64;
        let center = values.len() as f64 / 2.0;
        let mut running = [0.0; 5];
        let mut sums = vec![running];
        for (i, value) in values.iter().enumerate() {
            let (x, y) = (i as f64 - center, value - middle);
            for (sum, term) in running.iter_mut().zip([x, y, x * x, x * y, y * y]) {
                *sum += term;
            }
            sums.push(running);
        }
        Sums { sums }
    }

    /// Squared error of the least-squares line through `from..to`.
    fn error(&self, from: usize, to: usize) -> f64 {
        let n = (to - from) as f64;
        let [x, y, xx, xy, yy] = std::array::from_fn(|i| self.sums[to][i] - self.sums[from][i]);
        let spread = xx - x * x / n;
        let shared = xy - x * y / n;
        let total = yy - y * y / n;
        if spread <= 0.0 {
            return total.max(0.0);
        }
        (total - shared * shared / spread).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::noise::Noise, *};

    #[test]
    fn warm_up_ends_where_it_ends() {
        let mut noise = Noise(3);
        for end in [10usize, 40, 70] {
            let values: Vec<f64> = (0..100)
                .map(|i| 50.0 * i.min(end) as f64 + noise.normal())
                .collect();
            let found = change_point(&values).unwrap();
            assert!(found.abs_diff(end) <= 2, "{found} for {end}");
        }
    }

    #[test]
    fn a_jump_is_found_and_noise_is_not_split() {
        let mut noise = Noise(5);
        let jump: Vec<f64> = (0..60)
            .map(|i| if i < 20 { 0.0 } else { 100.0 } + noise.normal())
            .collect();
        assert_eq!(change_point(&jump), Some(20));
        let split = (0..2000)
            .filter(|_| {
                let values: Vec<f64> = (0..80).map(|_| noise.normal()).collect();
                change_point(&values).is_some()
            })
            .count();
        assert!(split < 40, "{split} of 2000 series of pure noise");
        assert_eq!(change_point(&[1.0; 50]), None);
    }
}
