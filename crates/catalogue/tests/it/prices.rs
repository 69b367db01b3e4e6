//! Prices and costs are exact.

use contexture_catalogue::{Catalogue, Meter, Price, Prices, Usage};
use proptest::prelude::*;

fn usage(set: impl FnOnce(&mut Usage)) -> Usage {
    let mut usage = Usage::default();
    set(&mut usage);
    usage
}

#[test]
fn prices_read_as_decimals() {
    for (text, expected) in [
        ("\"0.075\"", Some(75_000)),
        ("0.075", Some(75_000)),
        ("5", Some(5_000_000)),
        ("\"1.3e3\"", None),
        ("1e-7", None),
        ("0.000001", Some(1)),
        ("\"0.0000001\"", None),
        ("-1", None),
        ("\"\"", None),
        ("\".5\"", None),
        ("\"5.\"", Some(5_000_000)),
        ("1e300", None),
        ("\"1000000.000001\"", None),
        ("\"٣\"", None),
    ] {
        let price = serde_json::from_str::<Price>(text).ok();
        assert_eq!(
            price.map(Price::micro_dollars_per_million),
            expected,
            "{text}"
        );
    }
}

#[test]
fn costs_are_sums_without_rounding() {
    let catalogue = Catalogue::builtin();
    let opus = &catalogue.resolve("claude-opus-4-8").unwrap().prices;
    let gemini = &catalogue.resolve("gemini-2.5-pro").unwrap().prices;
    for (prices, usage, expected) in [
        (opus, usage(|u| u.input = Some(1)), "$0.000005"),
        (opus, usage(|u| u.cache_write_1h = Some(1_000)), "$0.01"),
        (
            opus,
            usage(|u| (u.cache_read, u.cache_write) = (Some(3), Some(1))),
            "$0.00000775",
        ),
        (opus, Usage::default(), "$0"),
        (gemini, usage(|u| u.input = Some(200_000)), "$0.25"),
        (gemini, usage(|u| u.input = Some(200_001)), "$0.5000025"),
        // The tier goes by the whole input, cached or not, and holds for the output as well.
        (
            gemini,
            usage(|u| (u.cache_read, u.input, u.output) = (Some(200_000), Some(1), Some(1))),
            "$0.0500175",
        ),
    ] {
        let cost = prices.cost(&usage);
        assert!(cost.is_complete());
        assert_eq!(cost.to_string(), expected, "{usage:?}");
    }
}

#[test]
fn what_has_no_price_is_named_not_free() {
    let prices: Prices = serde_json::from_str(r#"{"input": "2"}"#).unwrap();
    let cost = prices.cost(&usage(|u| {
        (u.input, u.output, u.cache_read) = (Some(10), Some(5), Some(0))
    }));
    assert_eq!(cost.unpriced, [Meter::Output]);
    assert_eq!(cost.pico_dollars, 20_000_000);
    assert!(!cost.is_complete());
}

proptest! {
    #[test]
    fn any_usage_has_a_cost(input: u64, output: u64, price in 0u64..=1_000_000_000_000) {
        let price = Price::from_micro_dollars_per_million(price);
        let mut prices = Prices::default();
        (prices.input, prices.output) = (Some(price), Some(price));
        let cost = prices.cost(&usage(|u| (u.input, u.output) = (Some(input), Some(output))));
        let expected = (u128::from(input) + u128::from(output)) * u128::from(price.micro_dollars_per_million());
        prop_assert_eq!(cost.pico_dollars, expected);
        let text = serde_json::to_string(&price).unwrap();
        prop_assert_eq!(serde_json::from_str::<Price>(&text).unwrap(), price);
    }
}
