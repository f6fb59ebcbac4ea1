//! How steep is it? The median of all pairwise slopes (Theil 1950, Sen 1968): up to 29 % of the
//! values may be wild.

use super::median;

/// 97.5 % point of the standard normal distribution.
const Z95: f64 = 1.959_964;
/// Above this many points only every n-th is used: the pairs grow with the square.
const MAX_POINTS: usize = 160;

/// A slope with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Slope {
    pub slope: f64,
    pub low: f64,
    pub high: f64,
}

/// The slope through `points` (x, y), which must be finite and in order of x; `None` for fewer
/// than two different x. The interval is Sen's, from the variance of Kendall's S without ties.
pub(crate) fn theil_sen(points: &[(f64, f64)]) -> Option<Slope> {
    let every = points.len().div_ceil(MAX_POINTS).max(1);
    // So that the newest is among them.
    let offset = points.len().saturating_sub(1) % every;
    let points: Vec<(f64, f64)> = points.iter().skip(offset).step_by(every).copied().collect();
    let n = points.len();
    let mut slopes = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for (at, (x, y)) in points.iter().enumerate() {
        for (later_x, later_y) in &points[at + 1..] {
            if later_x > x {
                slopes.push((later_y - y) / (later_x - x));
            }
        }
    }
    let slope = median(&mut slopes)?;
    let count = n as f64;
    let half = Z95 * (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt() / 2.0;
    let middle = slopes.len() as f64 / 2.0;
    Some(Slope {
        slope,
        low: nth(&mut slopes, middle - half - 1.0),
        high: nth(&mut slopes, middle + half),
    })
}

fn nth(slopes: &mut [f64], index: f64) -> f64 {
    let index = index.round().clamp(0.0, (slopes.len() - 1) as f64) as usize;
    *slopes.select_nth_unstable_by(index, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::noise::Noise, *};

    fn line(n: usize, y: impl FnMut(f64) -> f64) -> Vec<(f64, f64)> {
        let x = (0..n).map(|i| i as f64);
        let y: Vec<f64> = x.clone().map(y).collect();
        x.zip(y).collect()
    }

    #[test]
    fn a_quarter_of_wild_values_changes_nothing() {
        let wild = line(100, |x| if x % 4.0 == 0.0 { 1e9 } else { 7.0 * x });
        assert!((theil_sen(&wild).unwrap().slope - 7.0).abs() < 0.5);
        assert_eq!(theil_sen(&[(1.0, 2.0)]), None);
        assert_eq!(theil_sen(&[]), None);
    }

    #[test]
    fn the_interval_covers_the_truth_at_its_rate() {
        let mut noise = Noise(7);
        let covered = (0..2000)
            .filter(|_| {
                let series = line(50, |x| 0.3 * x + noise.normal());
                let slope = theil_sen(&series).unwrap();
                slope.low <= 0.3 && 0.3 <= slope.high
            })
            .count();
        assert!(
            (1860..=1940).contains(&covered),
            "{covered} of 2000 for 95 %"
        );
    }

    proptest! {
        #[test]
        fn follows_shift_and_scale(values in proptest::collection::vec(-1e6f64..1e6, 3..60), shift in -1e6f64..1e6, scale in 0.1f64..10.0) {
            let plain = theil_sen(&line(values.len(), |x| values[x as usize])).unwrap();
            let moved = theil_sen(&line(values.len(), |x| values[x as usize] * scale + shift)).unwrap();
            prop_assert!((plain.slope * scale - moved.slope).abs() <= 1e-6 * (1.0 + plain.slope.abs() * scale) + 1e-4);
            prop_assert!(plain.low <= plain.slope && plain.slope <= plain.high);
        }
    }
}
