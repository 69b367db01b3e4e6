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

/// Returns what the carried members may weigh: nobody documents which of them reach the model.
pub(crate) fn fields_weight(
    request: &CompileRequest,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> TokenBounds {
    let fields = request.fields.wire_fields(request.dialect.format.as_str());
    // Hints of the reader (`~…`) are not written.
    let written = fields.iter().filter(|(name, _)| !name.starts_with('~'));
    let weights = written.map(|(_, value)| lowerer.count_text(value.get(), memo).high);
    TokenBounds::between(0, weights.sum())
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
