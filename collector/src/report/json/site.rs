//! A site as JSON: its line, its stack, what grows and what holds it.

use std::{collections::HashMap, sync::Arc};

use vramscope_events::FrameKind;

use super::{finite, schema as json};
use crate::{
    report::headline,
    view::{DeviceView, FrameView, SiteId, SiteView, View},
};
/// The stacks of a device's sites by id: groups carry the stack of one of their members, shared,
/// but are themselves made on the way and do not live as long as the view.
pub struct Stacks<'a>(HashMap<SiteId, &'a SiteView>);

impl<'a> Stacks<'a> {
    /// Those of a device.
    pub fn of(device: &'a DeviceView) -> Self {
        let all = device.sites.iter().chain(device.driver_sites.iter());
        Stacks(all.map(|site| (site.id, site)).collect())
    }
}

/// A group as a site.
pub fn site<'a>(view: &View, group: &SiteView, stacks: &Stacks<'a>) -> json::Site<'a> {
    let member = stacks.0.get(&group.id).copied();
    let own = member.and_then(SiteView::own_frame);
    json::Site {
        id: group.id.0,
        file: own.map(|frame| &*frame.file),
        line: own.map(|frame| frame.line).filter(|line| *line > 0),
        function: own.map(|frame| &*frame.function),
        source: own.and_then(|frame| frame.source.as_deref()),
        backward: group.backward(),
        stacks: group.stacks,
        live_bytes: group.live_bytes,
        live_blocks: group.live_blocks,
        total_bytes: group.total_bytes,
        total_blocks: group.total_blocks,
        generations: group.generations,
        growth_bytes_per_step: finite(group.growth_bytes_per_step),
        growth_share: finite(group.growth_share),
        first_seen_seconds: group.first_seen.seconds_since(view.started),
        last_seen_seconds: group.last_seen.seconds_since(view.started),
        oldest_survivor_seconds: headline::age_seconds(group, view.now),
        born: (group.spans.iter())
            .map(|span| json::Born {
                first_step: span.first,
                last_step: span.last,
                blocks: span.blocks,
                bytes: span.bytes,
                generations: span.generations,
            })
            .collect(),
        retained_by: retained(view, group, stacks),
        stack: member
            .map(|member| member.stack.iter().map(|one| frame(one)).collect())
            .unwrap_or_default(),
    }
}

fn retained<'a>(view: &View, group: &SiteView, stacks: &Stacks<'a>) -> Option<json::Retained<'a>> {
    // The answer may be of another member than the one that names the group.
    let wanted = group.retained.as_ref()?;
    let mut known = stacks.0.values().filter_map(|site| site.retained.as_ref());
    let retained = known.find(|retained| Arc::ptr_eq(retained, wanted))?;
    let answer = &*retained.holders;
    Some(json::Retained {
        asked_seconds: retained.asked_at.seconds_since(view.started),
        survivors: answer.survivors,
        asked: answer.asked,
        holders: (answer.holders.iter().enumerate())
            .map(|(index, holder)| json::Holder {
                words: &holder.words,
                kind: &holder.kind,
                path: &holder.path,
                blocks: holder.blocks,
                bytes: holder.bytes,
                length: holder.length,
                bound: holder.bound,
                length_before: retained.lengths_before.get(index).copied().flatten(),
            })
            .collect(),
        seconds_since_asked_before: (retained.asked_before)
            .map(|before| retained.asked_at.seconds_since(before)),
        partial: answer.partial.as_deref(),
        notes: answer.notes.iter().map(String::as_str).collect(),
        cost: &answer.cost,
    })
}

fn frame(frame: &FrameView) -> json::Frame<'_> {
    json::Frame {
        kind: match frame.kind {
            FrameKind::Python => "python",
            FrameKind::Native => "native",
            FrameKind::Backward => "backward",
        },
        file: &frame.file,
        line: Some(frame.line).filter(|line| *line > 0),
        function: &frame.function,
        source: frame.source.as_deref(),
        user: frame.user,
    }
}
