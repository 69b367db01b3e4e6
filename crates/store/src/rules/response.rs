//! Which answers a redaction takes the inputs of.

/// Where a path passes one of some places, first: `path` as stretches `(segment, from, to)` of depths,
/// places as `(segment, depth)`. An answer computed from that depth or a later one on the path has
/// seen it.
#[must_use]
pub fn first_on_path<N: Copy + Ord>(path: &[(N, N, N)], places: &[(N, N)]) -> Option<N> {
    let on_path = |(segment, depth): &&(N, N)| {
        let mut stretches = path.iter();
        stretches.any(|(of, from, to)| of == segment && from <= depth && depth <= to)
    };
    places.iter().filter(on_path).map(|(_, depth)| *depth).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_where_the_path_passes_it() {
        let path = [(3, 5, 9), (1, 1, 4)];
        assert_eq!(first_on_path(&path, &[(3, 7), (1, 4)]), Some(4));
        assert_eq!(first_on_path(&path, &[(3, 9)]), Some(9));
        assert_eq!(first_on_path(&path, &[(1, 5), (2, 3), (3, 10)]), None);
    }
}
