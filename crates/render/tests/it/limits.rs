//! Deep and large trees.

use contexture_ir::{Fragment, FragmentData, MAX_DEPTH, object, user};
use contexture_render::{Format, Grouping, RenderError};

/// A tree of this many levels, of arrays, objects and fragments in turn.
fn nest(levels: usize) -> FragmentData {
    (0..levels).fold(FragmentData::from("leaf"), |inner, level| match level % 3 {
        0 => FragmentData::from([inner]),
        1 => object([("key", inner)]),
        _ => Fragment::new("inner", inner).into(),
    })
}

#[test]
fn depth_is_limited_and_never_overflows() {
    for format in Format::ALL {
        let render = |data| {
            format
                .renderer(Grouping::Everywhere)
                .render(&[Fragment::new("deep", data)])
        };
        let text = render(nest(MAX_DEPTH)).unwrap();
        assert!(text.contains("leaf"), "{format}");
        for levels in [MAX_DEPTH + 1, 3000] {
            let error = render(nest(levels)).unwrap_err();
            assert!(
                matches!(&error, RenderError::TooDeep { name } if name == "deep"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_message_at_the_limit_is_too_deep() {
    let deep = nest(MAX_DEPTH - 1);
    let with_message =
        (0..MAX_DEPTH - 1).fold(FragmentData::from([user("u")]), |inner, _| [inner].into());
    for format in Format::ALL {
        let render = |data| {
            format
                .renderer(Grouping::Off)
                .render(&[Fragment::new("deep", data)])
        };
        assert!(render(deep.clone()).is_ok(), "{format}");
        let error = render(with_message.clone()).unwrap_err();
        assert!(matches!(error, RenderError::TooDeep { .. }), "{error}");
    }
}

#[test]
fn large_flat_trees_cost_their_size() {
    // A quadratic step would take minutes here.
    let many = FragmentData::Array(
        (0..20_000)
            .map(|n| Fragment::new(format!("n{n}"), n).into())
            .collect(),
    );
    let wide = object((0..20_000).map(|n| (format!("key {n}"), n)));
    let fragments = [Fragment::new("many", many), Fragment::new("wide", wide)];
    for format in Format::ALL {
        let text = format
            .renderer(Grouping::Everywhere)
            .render(&fragments)
            .unwrap();
        assert!(text.len() > 200_000, "{format}");
    }
}
