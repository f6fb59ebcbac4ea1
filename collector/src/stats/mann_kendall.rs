//! Is there a trend? Mann (1945) and Kendall (1975), with ties, and with the variance corrected
//! for autocorrelation as Hamed and Rao (1998) do.

use super::{normal::upper_tail, theil_sen};

/// Lags at which autocorrelation is looked for.
const MAX_LAG: usize = 10;

/// Outcome of a test for a monotonic trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// Standardised statistic: positive for a rise.
    pub z: f64,
    /// Probability of such a rise (or a steeper one) without a trend.
    pub p_rising: f64,
    /// By how much autocorrelation inflates the variance; 1 for independent values.
    pub inflation: f64,
}

/// Tests `values`, which must be in order and finite. Fewer than four say nothing: z is 0.
pub(crate) fn mann_kendall(values: &[f64]) -> Trend {
    let n = values.len();
    let nothing = Trend {
        z: 0.0,
        p_rising: 0.5,
        inflation: 1.0,
    };
    if n < 4 {
        return nothing;
    }
    let mut s = 0i64;
    for (at, value) in values.iter().enumerate() {
        for later in &values[at + 1..] {
            s += i64::from(later > value) - i64::from(later < value);
        }
    }
    let variance = variance(values);
    if variance <= 0.0 {
        return nothing;
    }
    let inflation = inflation(values);
    // Continuity correction.
    let s = s as f64 - (s.signum() as f64);
    let z = s / (variance * inflation).sqrt();
    Trend {
        z,
        p_rising: upper_tail(z),
        inflation,
    }
}

/// Variance of S without a trend, given the ties.
fn variance(values: &[f64]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|tied| term(tied.len() as f64))
        .sum();
    (term(values.len() as f64) - ties) / 18.0
}

/// By how much the autocorrelation of the detrended ranks inflates the variance of S. Only
/// positive correlations beyond the 95 % band count, so that the correction never makes the test
/// more eager.
pub(crate) fn inflation(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 10 {
        return 1.0;
    }
    let points: Vec<(f64, f64)> = (0..n)
        .map(|i| i as f64)
        .zip(values.iter().copied())
        .collect();
    let slope = theil_sen(&points).map_or(0.0, |slope| slope.slope);
    let rest: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let ranks = ranks(&rest);
    let mean = ranks.iter().sum::<f64>() / n as f64;
    let square = |r: &f64| (r - mean) * (r - mean);
    let total: f64 = ranks.iter().map(square).sum();
    if total <= 0.0 {
        return 1.0;
    }
    let count = n as f64;
    let band = 1.96 / count.sqrt();
    let mut sum = 0.0;
    for lag in 1..=MAX_LAG.min(n / 4) {
        let shared: f64 = ranks
            .iter()
            .zip(&ranks[lag..])
            .map(|(a, b)| (a - mean) * (b - mean))
            .sum();
        let rho = shared / total;
        if rho <= band {
            // Beyond the first lag without correlation there is only noise.
            break;
        }
        let left = count - lag as f64;
        sum += left * (left - 1.0) * (left - 2.0) * rho;
    }
    1.0 + 2.0 * sum / (count * (count - 1.0) * (count - 2.0))
}

/// Ranks from 1, ties sharing their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = start as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for index in tied {
            ranks[*index] = rank;
        }
        start += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::{super::noise::Noise, *};

    #[test]
    fn a_known_example() {
        // 5 strictly rising values: S = 10, variance 5*4*15/18.
        let trend = mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((trend.z - 9.0 / (300.0f64 / 18.0).sqrt()).abs() < 1e-12);
        assert_eq!(mann_kendall(&[7.0; 50]).z, 0.0);
        assert_eq!(mann_kendall(&[1.0, 2.0]).z, 0.0);
    }

    #[test]
    fn false_alarms_on_noise_are_rare() {
        let mut noise = Noise(42);
        let mut alarms = 0;
        for window in 0..10_000 {
            // Steps differ in level and a few stand out, as floors do.
            let values: Vec<f64> = (0..60)
                .map(|_| {
                    let spike = if noise.uniform() < 0.05 { 30.0 } else { 0.0 };
                    noise.normal() + spike + f64::from(window)
                })
                .collect();
            alarms += i32::from(mann_kendall(&values).p_rising < 1e-4);
        }
        assert!(alarms <= 1 + 3, "{alarms} in 10,000 where 1 is expected");
    }
}
