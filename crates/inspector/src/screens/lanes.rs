//! The lanes of a tree: where the line of each branch runs beside the messages, newest first.

use std::fmt::Write as _;

/// Lanes that are drawn: what is beyond them has no line, and its messages stand at the edge.
const DRAWN: usize = 8;
/// Pixels from one lane to the next, and of a row.
const STEP: usize = 12;
const HEIGHT: usize = 44;

/// A message in its lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneRow {
    /// Its lane, from 0.
    pub(crate) lane: usize,
    /// Lanes that come from above into its row, its own included if something follows it.
    above: Vec<usize>,
    /// Lanes that go on below.
    below: Vec<usize>,
    /// Lanes that end here: this message is where they left.
    joins: Vec<usize>,
}

/// Places messages, children before parents, in lanes. Each is given by its id and the id of the message before it.
///
/// Takes the product of messages and lanes: for a page of the tree, which has at most 500 messages.
pub(crate) fn place_in_lanes<'a>(
    entries: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Vec<LaneRow> {
    // What each lane waits for: the id of the next message in it.
    let mut lanes: Vec<Option<&str>> = Vec::new();
    let mut rows = Vec::new();
    for (id, parent) in entries {
        let above = busy(&lanes);
        let mut waiting = (0..lanes.len()).filter(|at| lanes.get(*at) == Some(&Some(id)));
        let found = waiting.next();
        let joins: Vec<usize> = waiting.collect();
        let lane = found.unwrap_or_else(|| {
            // A branch's end: the first lane that is free, so that pages do not grow to the right.
            let free = lanes.iter().position(Option::is_none);
            free.unwrap_or_else(|| {
                lanes.push(None);
                lanes.len() - 1
            })
        });
        // Branches that began here end here, since messages come newest first.
        for join in &joins {
            if let Some(ended) = lanes.get_mut(*join) {
                *ended = None;
            }
        }
        if let Some(own) = lanes.get_mut(lane) {
            *own = parent;
        }
        rows.push(LaneRow {
            lane,
            above,
            below: busy(&lanes),
            joins,
        });
    }
    rows
}

fn busy(lanes: &[Option<&str>]) -> Vec<usize> {
    // Of ten thousand branches eight are drawn: more lines would say nothing.
    let busy = lanes.iter().enumerate().filter(|(_, lane)| lane.is_some());
    busy.map(|(at, _)| at).take(DRAWN).collect()
}

impl LaneRow {
    /// Draws the row's lines and its dot as SVG. `is_head` fills the dot: a branch ends here.
    pub(crate) fn to_svg(&self, is_head: HeadMark) -> String {
        let x = |lane: usize| STEP / 2 + lane.min(DRAWN) * STEP;
        let widest = self.above.iter().chain(&self.below).chain([&self.lane]);
        let width = x(widest.copied().max().unwrap_or_default()) + STEP / 2;
        let middle = HEIGHT / 2;
        let mut out = format!("<svg width=\"{width}\" height=\"{HEIGHT}\">");
        for lane in self.above.iter().filter(|lane| !self.joins.contains(lane)) {
            let _ = write!(out, "<path d=\"M{0} 0V{middle}\"/>", x(*lane));
        }
        for lane in self.joins.iter().take(DRAWN) {
            let (from, to) = (x(*lane), x(self.lane));
            let _ = write!(out, "<path d=\"M{from} 0Q{from} {middle} {to} {middle}\"/>");
        }
        for lane in &self.below {
            let _ = write!(out, "<path d=\"M{0} {middle}V{HEIGHT}\"/>", x(*lane));
        }
        let class = match is_head {
            HeadMark::Head => "head",
            HeadMark::None => "dot",
        };
        let _ = write!(
            out,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{middle}\" r=\"4\"/></svg>",
            x(self.lane)
        );
        // A row is as high as its text; what is below the first lines is lines that go on.
        let _ = write!(out, "<svg width=\"{width}\">");
        for lane in &self.below {
            let _ = write!(
                out,
                "<line x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"100%\"/>",
                x(*lane)
            );
        }
        format!("<div class=\"lanes\" aria-hidden=\"true\">{out}</svg></div>")
    }
}

/// Whether a branch ends with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadMark {
    /// A branch ends there.
    Head,
    /// No branch ends there.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_have_lanes_until_they_meet() {
        // Two branches from b: c on the first, d on the second.
        let entries = [
            ("c", Some("b")),
            ("d", Some("b")),
            ("b", Some("a")),
            ("a", None),
        ];
        let rows = place_in_lanes(entries.into_iter());
        let lanes: Vec<usize> = rows.iter().map(|row| row.lane).collect();
        assert_eq!(lanes, [0, 1, 0, 0]);
        assert_eq!(rows[2].joins, [1]);
        assert_eq!(
            (rows[3].above.as_slice(), rows[3].below.len()),
            ([0].as_slice(), 0)
        );
        let svg = rows[2].to_svg(HeadMark::None);
        assert_eq!(svg.matches("<path").count(), 3, "{svg}");
    }

    #[test]
    fn many_branches_are_drawn_in_little_space() {
        let ids: Vec<String> = (0..500).map(|at| format!("n{at}")).collect();
        let entries = ids.iter().map(|id| (id.as_str(), Some("root")));
        let rows = place_in_lanes(entries.chain([("root", None)]));
        assert_eq!(rows.last().map(|row| row.joins.len()), Some(499));
        assert!(
            rows.iter()
                .all(|row| row.to_svg(HeadMark::Head).len() < 1_500)
        );
    }
}
