//! The members of the request a payload is made from: which of them are written, and what of the settings is not as it came.

use contexture_ir::Extra;
use contexture_report::SettingChange;
use contexture_tokens::TokenBounds;
use contexture_wire::{Format, automatic_marker_member};

use crate::blocks::{Lowerer, Memo};
use crate::input::CompileRequest;

/// Returns the request's own members without those that the compile writes.
///
/// A request's `"tools": []` say would otherwise stand where the compile offers none, and be refused.
pub(crate) fn carried_fields(request: &CompileRequest) -> Extra {
    let format = request.dialect.format;
    let mut own = request.fields.wire_fields(format.as_str());
    let mut fields = request.fields.clone();
    for name in compiled_names(format) {
        own.remove(name);
    }
    fields.set_wire_fields(format.as_str(), own);
    fields
}

/// Returns the settings of the payload that differ from those of the request it is made from.
pub(crate) fn setting_changes(request: &CompileRequest) -> Vec<SettingChange> {
    let change = |field: &str, why| SettingChange {
        field: field.to_owned(),
        why,
    };
    let own = request.fields.wire_fields(request.dialect.format.as_str());
    let written = compiled_names(request.dialect.format).filter(|name| own.get(name).is_some());
    let mut changes: Vec<SettingChange> = written
        .map(|name| change(name, "the compile writes this member or leaves it out"))
        .collect();
    if request.options.max_output_tokens.is_none() {
        let why = "no limit was given: the answer may use what the budget keeps free";
        changes.push(change("options.max_output_tokens", why));
    }
    changes
}

/// Returns what the carried members may weigh: of some it is documented that they never reach the model, of others nothing is.
pub(crate) fn fields_weight(
    request: &CompileRequest,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> TokenBounds {
    let fields = request.fields.wire_fields(request.dialect.format.as_str());
    let spec = request.dialect.format.spec();
    let is_silent = |name: &str| {
        // Hints of the reader (`~…`) are not written; members of members are named `outer.inner`.
        let inner = name.rsplit('.').next().unwrap_or(name);
        name.starts_with('~') || spec.silent_members().contains(&inner)
    };
    let mut weigh = |value: &str| lowerer.count_text(value, memo).high;
    let mut sum = 0u64;
    for (name, value) in fields.iter().filter(|(name, _)| !is_silent(name)) {
        // Where options have an object of their own, what is in it counts, and not that it is there.
        let is_holder = spec.option_members().holder == Some(name);
        sum = sum.saturating_add(match value.fields().filter(|_| is_holder) {
            Some(inner) => {
                let said = inner.iter().filter(|(name, _)| !is_silent(name));
                said.map(|(_, value)| weigh(value.get())).sum()
            }
            None => weigh(value.get()),
        });
    }
    TokenBounds::between(0, sum)
}

/// The members that the compile writes, in all spellings. Not the provider's option for automatic cache markers: a
/// caller's choice of those holds.
fn compiled_names(format: Format) -> impl Iterator<Item = &'static str> {
    let spec = format.spec();
    let names = spec.members().map_or(&[][..], |members| members.compiled);
    let automatic = automatic_marker_member(format);
    names
        .iter()
        .flat_map(|spellings| spellings.iter().copied())
        .filter(move |name| Some(*name) != automatic)
}
