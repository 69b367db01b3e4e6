//! The model that layers may ask: one prompt, one answer and what it used.

use std::sync::Arc;

use contexture_catalogue::Catalogue;
use contexture_compile::{Compiler, Target};
use contexture_ir::{Item, Message, Role, Usage};
use contexture_layers::LayerError;
use contexture_models::{Model, ModelRequest};
use contexture_wire::lift;

use crate::asked::call_model;

/// The model that layers may ask.
#[derive(Clone, Debug)]
pub(crate) struct LayerModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) target: Target,
}

impl LayerModel {
    pub(crate) async fn complete_prompt(
        &self,
        prompt: &str,
        catalogue: &Catalogue,
    ) -> Result<(String, Usage), LayerError> {
        let asked = [Item::Message(Message::text(Role::User, prompt))];
        let compiled = Compiler::new(catalogue).compile(&asked, &self.target);
        let compiled = compiled.map_err(LayerError::from_message)?;
        let format = self.target.format();
        let request = ModelRequest {
            format,
            model: self.target.model().to_owned(),
            payload: compiled.payload.to_json(),
        };
        let answer = call_model(&*self.model, request).await;
        let answer = answer.map_err(LayerError::from_message)?;
        let answer = lift(format, &answer.body).map_err(LayerError::from_message)?;
        let items = answer.transcript.items.iter();
        let said = items.filter(|item| matches!(item, Item::Message(_)));
        let said = said.map(Item::text).collect::<Vec<_>>().join("\n");
        let info = answer.transcript.response.unwrap_or_default();
        Ok((said, info.usage.unwrap_or_default()))
    }
}
