//! Evaluates conversation filters, and derives the attributes that backends index for them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use contexture_ir::Raw;

use crate::contract::{
    Comparison, Conversation, Error, Limits, ListConversations, Metadata, MetadataFilter,
    MetadataKey, MetadataValue,
};

/// Largest number of conditions of one filter, and its greatest nesting depth.
const MAX_CONDITIONS: usize = 64;
const MAX_DEPTH: usize = 8;

/// Metadata fields that a filter can test. `None` stands for a value that compares with nothing: a
/// list, an object, a number outside the range of `f64`, or a text with U+0000.
pub type Attributes = BTreeMap<MetadataKey, Option<MetadataValue>>;

/// Returns the fields of `metadata` that a filter can test, which a backend stores separately.
#[must_use]
pub fn filter_attributes(metadata: &Metadata) -> Attributes {
    let fields = metadata.iter().filter_map(|(key, value)| {
        let key = MetadataKey::new(key.as_str()).ok()?;
        Some((key, value_of(value)))
    });
    fields.collect()
}

fn value_of(value: &Raw) -> Option<MetadataValue> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'n' => Some(MetadataValue::Null),
        b't' => Some(MetadataValue::Bool(true)),
        b'f' => Some(MetadataValue::Bool(false)),
        b'"' => value
            .as_string()
            .filter(|text| !text.contains('\0'))
            .map(MetadataValue::Text),
        b'{' | b'[' => None,
        _ => text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(MetadataValue::Number),
    }
}

/// Checks that a list's conditions are within the limits.
pub fn check_list(list: &ListConversations, limits: &Limits) -> Result<(), Error> {
    for text in [&list.title, &list.resource].into_iter().flatten() {
        super::check::check_limit("title_bytes", limits.title_bytes, text.len())?;
    }
    if let Some(filter) = &list.metadata {
        let mut conditions = 0;
        check_filter(filter, 1, &mut conditions, limits)?;
        super::check::check_limit("filter_conditions", MAX_CONDITIONS, conditions)?;
    }
    Ok(())
}

fn check_filter(
    filter: &MetadataFilter,
    depth: usize,
    conditions: &mut usize,
    limits: &Limits,
) -> Result<(), Error> {
    // The depth is checked before recursing; the number of conditions at the end.
    super::check::check_limit("filter_depth", MAX_DEPTH, depth)?;
    *conditions += 1;
    match filter {
        MetadataFilter::Has(_) => Ok(()),
        MetadataFilter::Compare { value, .. } => match value {
            MetadataValue::Number(number) if !number.is_finite() => Err(Error::invalid_argument(
                "metadata filter",
                "expected a finite number",
            )),
            MetadataValue::Text(text) if text.contains('\0') => Err(Error::invalid_argument(
                "metadata filter",
                "text with U+0000",
            )),
            MetadataValue::Text(text) => {
                super::check::check_limit("metadata_bytes", limits.metadata_bytes, text.len())
            }
            _ => Ok(()),
        },
        MetadataFilter::All(all) | MetadataFilter::Any(all) => all
            .iter()
            .try_for_each(|one| check_filter(one, depth + 1, conditions, limits)),
        MetadataFilter::Not(one) => check_filter(one, depth + 1, conditions, limits),
    }
}

/// Returns whether metadata with these fields satisfies the filter.
#[must_use]
pub fn matches_filter(filter: &MetadataFilter, attributes: &Attributes) -> bool {
    match filter {
        MetadataFilter::Has(key) => attributes.contains_key(key),
        MetadataFilter::Compare { key, by, value } => attributes
            .get(key)
            .and_then(Option::as_ref)
            .and_then(|field| compare_values(field, value))
            .is_some_and(|order| satisfies_comparison(*by, order)),
        MetadataFilter::All(all) => all.iter().all(|one| matches_filter(one, attributes)),
        MetadataFilter::Any(any) => any.iter().any(|one| matches_filter(one, attributes)),
        MetadataFilter::Not(one) => !matches_filter(one, attributes),
    }
}

fn compare_values(field: &MetadataValue, value: &MetadataValue) -> Option<Ordering> {
    match (field, value) {
        (MetadataValue::Null, MetadataValue::Null) => Some(Ordering::Equal),
        (MetadataValue::Bool(a), MetadataValue::Bool(b)) => Some(a.cmp(b)),
        (MetadataValue::Number(a), MetadataValue::Number(b)) => a.partial_cmp(b),
        (MetadataValue::Text(a), MetadataValue::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn satisfies_comparison(by: Comparison, order: Ordering) -> bool {
    match by {
        Comparison::Equal => order.is_eq(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Returns whether a title contains a text, ignoring case.
#[must_use]
pub fn title_contains(title: Option<&str>, text: &str) -> bool {
    title.is_some_and(|title| title.to_lowercase().contains(&text.to_lowercase()))
}

/// Returns whether a conversation passes a list's filters; the cursor is not considered.
#[must_use]
pub(crate) fn is_listed_by(list: &ListConversations, one: &Conversation) -> bool {
    let resource = list.resource.is_none() || list.resource == one.resource;
    let since = list.updated_since.is_none_or(|ms| one.updated_ms >= ms);
    let before = list.updated_before.is_none_or(|ms| one.updated_ms < ms);
    let title = list.title.as_deref();
    resource
        && since
        && before
        && title.is_none_or(|text| title_contains(one.title.as_deref(), text))
        && list
            .metadata
            .as_ref()
            .is_none_or(|filter| matches_filter(filter, &filter_attributes(&one.metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(json: &[(&str, &str)]) -> Metadata {
        let fields = json.iter();
        let fields = fields.map(|(key, value)| (String::from(*key), Raw::parse(*value).unwrap()));
        fields.collect()
    }

    #[test]
    fn filters_compare_within_a_kind() {
        let attributes = filter_attributes(&metadata(&[
            ("n", "3"),
            ("big", "12345678901234567890123"),
            ("huge", "1e999"),
            ("t", r#""b""#),
            ("b", "true"),
            ("z", "null"),
            ("o", r#"{"n":3}"#),
            ("no key", "1"),
        ]));
        assert_eq!(attributes.len(), 7);
        let key = |key: &str| MetadataKey::new(key).unwrap();
        let check = |name: &str, by: &str, value: MetadataValue, expected: bool| {
            let filter = MetadataFilter::Compare {
                key: key(name),
                by: by.parse().unwrap(),
                value,
            };
            assert_eq!(matches_filter(&filter, &attributes), expected, "{filter:?}");
            let not = MetadataFilter::Not(Box::new(filter));
            assert_eq!(matches_filter(&not, &attributes), !expected, "{not:?}");
        };
        check("n", "=", 3.0.into(), true);
        check("n", "<", 3.0.into(), false);
        check("n", "<=", 3.0.into(), true);
        check("n", ">", 2.5.into(), true);
        check("n", "=", "3".into(), false);
        check("big", ">=", 1e22.into(), true);
        check("huge", ">", 0.0.into(), false);
        check("t", ">", "a".into(), true);
        check("t", ">", "B".into(), true);
        check("b", "=", true.into(), true);
        check("z", "=", MetadataValue::Null, true);
        check("o", "=", MetadataValue::Null, false);
        check("missing", "<=", 3.0.into(), false);
        assert!(matches_filter(&MetadataFilter::Has(key("o")), &attributes));
        assert!(matches_filter(
            &MetadataFilter::Has(key("huge")),
            &attributes
        ));
        assert!(matches_filter(
            &MetadataFilter::All(Vec::new()),
            &attributes
        ));
        assert!(!matches_filter(
            &MetadataFilter::Any(Vec::new()),
            &attributes
        ));
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for key in ["", "a b", "a'", "é", "$.x", &"k".repeat(65)] {
            assert!(MetadataKey::new(key).is_err(), "{key}");
        }
        for word in ["", "==", "like", "; drop"] {
            assert!(word.parse::<Comparison>().is_err(), "{word}");
        }
        let check = |filter: MetadataFilter, limit: &str| {
            let list = ListConversations {
                metadata: Some(filter),
                ..ListConversations::default()
            };
            let error = check_list(&list, &Limits::default()).unwrap_err();
            assert!(error.to_string().contains(limit), "{error}");
        };
        let has = || MetadataFilter::Has(MetadataKey::new("k").unwrap());
        let deep = (0..9).fold(has(), |one, _| MetadataFilter::Not(Box::new(one)));
        check(deep, "filter_depth");
        check(
            MetadataFilter::Any((0..70).map(|_| has()).collect()),
            "filter_conditions",
        );
        let nan = MetadataFilter::field_equals("k", f64::NAN).unwrap();
        check(nan, "finite");
    }
}
