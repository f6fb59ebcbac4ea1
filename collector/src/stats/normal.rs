//! Tail of the standard normal distribution.

/// P(Z > z), absolute error below 8e-8 (Abramowitz and Stegun 1964, 26.2.17).
pub(crate) fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    const B: [f64; 5] = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    polynomial * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.158_655),
            (1.96, 0.024_998),
            (3.719, 1e-4),
        ] {
            assert!((upper_tail(z) - p).abs() < 1e-6, "{z}");
        }
        assert!((upper_tail(-1.0) - 0.841_345).abs() < 1e-6);
    }
}
