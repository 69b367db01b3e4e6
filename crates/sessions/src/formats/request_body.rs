//! Documents of the wire formats as sessions: one request, response or message array is one session.
//!
//! The metadata is the document without its history, as our own items format has it, with the kind
//! of document: `{"kind": "request", "frame": {"items": [], …}}`.

use contexture_ir::{ContentHash, Item, Raw, Transcript};
use contexture_wire::{Dialect, DocumentKind, Format, Lifted, lift, lower};

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::session::{
    Session, SessionHead, SessionInfo, SessionNode, audience_of, main_head, origin_of, title_of,
};

pub(crate) fn read_session(format: Format, text: &str) -> Result<Session, SessionError> {
    let Lifted {
        kind, transcript, ..
    } = lift(format, text)?;
    let Transcript {
        instructions,
        items,
        ..
    } = transcript;
    // The document around the history: written back with the items of the day.
    let frame = Transcript {
        instructions: Vec::new(),
        items: Vec::new(),
        ..transcript
    };
    let (tree, heads) = linear_tree(items);
    Ok(Session {
        format: SessionFormat::Wire(format),
        // A document has no id of its own; the same text is the same session.
        source_id: format!("{format}:{}", ContentHash::of(text.as_bytes())),
        title: title_of(&tree),
        instructions,
        tree,
        heads,
        metadata: document_metadata(kind, &frame),
        info: SessionInfo::default(),
        skipped: Vec::new(),
    })
}

/// Items one after the other.
pub(crate) fn linear_tree(items: Vec<Item>) -> (Vec<SessionNode>, Vec<SessionHead>) {
    let node = |(index, item): (usize, Item)| SessionNode {
        parent: index.checked_sub(1),
        origin: origin_of(&item),
        audience: audience_of(&item),
        item,
        message_id: None,
        created_at: None,
        imported: Some(index),
    };
    let tree: Vec<SessionNode> = items.into_iter().enumerate().map(node).collect();
    let heads = main_head(&tree);
    (tree, heads)
}

fn document_metadata(kind: DocumentKind, frame: &Transcript) -> Raw {
    // As our own format, which alone keeps all fields of every other.
    let frame = lower(&Dialect::of(Format::Items), DocumentKind::Request, frame).json;
    let json = format!(r#"{{"kind":"{}","frame":{frame}}}"#, kind.as_str());
    Raw::parse(json).unwrap_or_else(|_| Raw::null())
}

pub(crate) fn write_session(format: Format, session: &Session) -> Result<String, SessionError> {
    let mut transcript = main_transcript(session);
    let mut kind = DocumentKind::Messages;
    // A conversation that began here was never a document, and has nothing of one.
    let was_document = session.metadata.get() != "null";
    if session.format == SessionFormat::Wire(format) && was_document {
        let damaged = |what: &str| SessionError::Metadata {
            what: what.to_owned(),
        };
        let fields = session
            .metadata
            .fields()
            .ok_or_else(|| damaged("not an object"))?;
        kind = match fields.get(&["kind"]).map(|raw| raw.get()) {
            Some("\"request\"") => DocumentKind::Request,
            Some("\"response\"") => DocumentKind::Response,
            Some("\"messages\"") => DocumentKind::Messages,
            _ => return Err(damaged("no kind of document")),
        };
        let frame = fields.get(&["frame"]).ok_or_else(|| damaged("no frame"))?;
        let frame = lift(Format::Items, frame.get())?.transcript;
        transcript = Transcript {
            instructions: transcript.instructions,
            items: transcript.items,
            ..frame
        };
    // Items without a document are written as one, since a bare array would lose the instructions.
    } else if format == Format::Items {
        kind = DocumentKind::Request;
    }
    let dialect = Dialect {
        // What the document itself held may stand in it again.
        mid_system: Dialect::of(format).mid_system || session.format == SessionFormat::Wire(format),
        ..Dialect::of(format)
    };
    Ok(lower(&dialect, kind, &transcript).json)
}

/// Collects the instructions and everything on the main path.
pub(crate) fn main_transcript(session: &Session) -> Transcript {
    Transcript {
        instructions: session.instructions.clone(),
        items: session.main_path().map(|node| node.item.clone()).collect(),
        ..Transcript::default()
    }
}
