//! One question, from the roots to the answer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread::sleep,
};

use crate::{
    garbage::{Ancestry, Look, Loose},
    graph::{self, Graphs},
    grouping::{self, Finding, Groups},
    pace::{Pace, Slice},
    paths::Paths,
    peek::Peek,
    python::{Gil, Python},
    report::{Answer, Kind, Request},
    rtti::Classes,
    tensors::{Reader, Wanted},
    walk::{Progress, Walk},
};

/// Of the budget, what the walk may use; the rest is for names.
const FOR_THE_WALK: u64 = 75;
/// Ways that are written down in the slice that found their ends.
const MOST_NAMED_AT_ONCE: usize = 200;
/// So many slices are spent on looking at all objects, at most, for each question.
const MOST_LOOKS: u32 = 40;
/// Looks at all objects begin anew in every slice: where one gets on by fewer objects than these, the
/// next ones are long.
const GOOD_PROGRESS: usize = 20_000;
/// Nodes of graphs between two looks at the time and at whoever asked.
const NODES_AT_ONCE: usize = 512;

/// Why a search ended without an answer.
pub(crate) enum Stop {
    /// Nobody listens any more.
    Alone,
    /// The interpreter ends.
    Ended,
    /// We have made a mistake.
    Broken,
}

/// Searches; `is_wanted` tells whether somebody still listens.
pub(crate) fn search(
    python: &Python,
    request: &Request,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Answer, Stop> {
    let wanted = Wanted::new(&request.addresses);
    let peek = Peek::new();
    let mut reader = Reader {
        peek,
        classes: Classes::new(peek),
        wanted: &wanted,
    };
    let mut search = Search {
        python,
        request,
        is_wanted,
        pace: Pace::new(request.slice_ms, request.budget_ms),
        walk: Walk::default(),
        graphs: Graphs::default(),
        sources: 0,
        paths: Paths::default(),
        named: (0, 0),
        answer: Answer::default(),
    };
    let partial = search.walk(&mut reader)?;
    search.answer(&mut reader, partial)
}

struct Search<'a> {
    python: &'a Python,
    request: &'a Request,
    is_wanted: &'a dyn Fn() -> bool,
    pace: Pace,
    walk: Walk,
    graphs: Graphs,
    /// How many of the walk's graphs were begun with.
    sources: usize,
    paths: Paths,
    /// How many of the walk's hits and graphs have their ways written down.
    named: (usize, usize),
    answer: Answer,
}

impl Search<'_> {
    /// Takes the GIL for one slice. A mistake of ours must not end the program.
    fn slice<T>(&mut self, work: impl FnOnce(&mut Self, &Gil<'_>, &Slice) -> T) -> Result<T, Stop> {
        self.any_slice(Pace::begin, work)
    }

    fn any_slice<T>(
        &mut self,
        begin: impl FnOnce(&mut Pace) -> Slice,
        work: impl FnOnce(&mut Self, &Gil<'_>, &Slice) -> T,
    ) -> Result<T, Stop> {
        if !(self.is_wanted)() {
            return Err(Stop::Alone);
        }
        let gil = self.python.acquire().ok_or(Stop::Ended)?;
        // It may have taken long.
        if !(self.is_wanted)() {
            return Err(Stop::Alone);
        }
        let slice = begin(&mut self.pace);
        let done = catch_unwind(AssertUnwindSafe(|| work(self, &gil, &slice)));
        drop(gil);
        self.pace.end(slice);
        done.map_err(|_| Stop::Broken)
    }

    /// Walks over the objects and the graphs behind them until every block is found; why not to the
    /// end, where it was not.
    fn walk(&mut self, reader: &mut Reader<'_>) -> Result<Option<String>, Stop> {
        let near = self.walk_on(reader)?;
        self.look_into_graphs(reader)?;
        if near.is_some() || self.has_all() || !self.walk.go_far() {
            return Ok(near);
        }
        let far = self.walk_on(reader)?;
        self.look_into_graphs(reader)?;
        Ok(far.filter(|_| !self.has_all()))
    }

    /// Whether every block was found.
    fn has_all(&self) -> bool {
        let blocks = self.request.addresses.len();
        findings(&self.walk, &self.graphs, blocks)
            .iter()
            .all(Option::is_some)
    }

    /// Walks over the objects within reach; why not over all of them, where it was not.
    fn walk_on(&mut self, reader: &mut Reader<'_>) -> Result<Option<String>, Stop> {
        let budget = self.request.budget_ms * FOR_THE_WALK / 100;
        let mut stalled = 0;
        loop {
            let before = self.walk.seen();
            let memory = self.request.memory.saturating_sub(self.graphs.memory());
            let progress = self.slice(|this, gil, slice| {
                if this.answer.notes.is_empty() {
                    this.note_the_interpreter(gil);
                }
                this.walk.begin(gil, reader);
                let progress = this.walk.step(gil, reader, slice, memory * 3 / 4);
                this.name_the_new(gil);
                progress
            })?;
            stalled = if self.walk.seen() == before {
                stalled + 1
            } else {
                0
            };
            let objects = self.walk.objects;
            return Ok(match progress {
                Progress::Done => None,
                Progress::Full => Some(format!(
                    "{objects} objects were looked into, then the memory for it was used up \
                     ({} MiB)",
                    memory >> 20
                )),
                Progress::More if self.pace.cost().held_us >= budget * 1000 => Some(format!(
                    "{objects} objects were looked into, then the time for it was used up; allow \
                     more with --budget"
                )),
                Progress::More if stalled > 20 => Some(format!(
                    "{objects} objects were looked into, then a slice was too short for the next"
                )),
                Progress::More => {
                    sleep(self.pace.rest());
                    continue;
                }
            });
        }
    }

    /// Writes down the ways to what was found in this slice: a variable that is bound anew at every
    /// step leads to another tensor by the next.
    fn name_the_new(&mut self, gil: &Gil<'_>) {
        self.paths.begin();
        let new_hits = self.walk.hits.iter().skip(self.named.0);
        let new_graphs = self.walk.graphs.iter().skip(self.named.1);
        let nodes: Vec<u32> = (new_graphs.map(|(node, _)| *node).take(MOST_NAMED_AT_ONCE))
            .chain(new_hits.map(|hit| hit.node).take(MOST_NAMED_AT_ONCE))
            .collect();
        for node in nodes {
            self.paths.of(gil, &mut self.walk, node);
        }
        self.named = (self.walk.hits.len(), self.walk.graphs.len());
    }

    fn note_the_interpreter(&mut self, gil: &Gil<'_>) {
        let interpreters = gil.interpreters();
        if interpreters > 1 {
            self.answer.notes.push(format!(
                "{interpreters} interpreters: only the main one was searched"
            ));
        }
        if gil.collects() == Some(false) {
            self.answer
                .notes
                .push("the garbage collector is switched off (gc.disable)".into());
        }
    }

    /// Walks over the graphs, without the GIL.
    fn look_into_graphs(&mut self, reader: &mut Reader<'_>) -> Result<(), Stop> {
        let done = catch_unwind(AssertUnwindSafe(|| {
            for (source, node) in &self.walk.graphs[self.sources..] {
                self.graphs.add_source(*source, *node, reader);
            }
            self.sources = self.walk.graphs.len();
            while self.graphs.step(NODES_AT_ONCE, reader) {
                if !(self.is_wanted)() {
                    return Err(Stop::Alone);
                }
                if self.walk.memory() + self.graphs.memory() > self.request.memory {
                    self.answer.notes.push(
                        "the graphs behind the tensors are larger than the memory for them".into(),
                    );
                    return Ok(());
                }
            }
            Ok(())
        }));
        done.map_err(|_| Stop::Broken)?
    }

    /// Looks for what no root leads to; whether something is left of which nothing can be said.
    fn without_a_root(
        &mut self,
        reader: &mut Reader<'_>,
        findings: &mut [Option<Finding>],
        groups: &mut Groups,
    ) -> Result<bool, Stop> {
        let mut look = Look::default();
        let mut tries = 0;
        let mut begin: fn(&mut Pace) -> Slice = Pace::begin;
        let mut told = loop {
            tries += 1;
            let before = look.seen();
            let step = self.any_slice(begin, |this, gil, slice| {
                look.step(gil, &mut this.walk, reader, slice)
            })?;
            if look.seen() < before + GOOD_PROGRESS {
                begin = Pace::begin_long;
            }
            match step {
                Some(false) if tries < MOST_LOOKS && !self.pace.is_used_up() => {
                    sleep(self.pace.rest());
                }
                step => break step == Some(true),
            }
        };
        let mut left = Vec::new();
        for loose in &look.found {
            let place = &mut findings[loose.block as usize];
            if place.is_none() {
                match cycle(loose, reader)? {
                    Some(words) => {
                        groups.add_words(Kind::Native, &words, loose.block);
                        *place = Some(Finding::Told);
                    }
                    None => left.push(loose),
                }
            }
        }
        if !left.is_empty() {
            let mut ancestry = Ancestry::of(left.iter().copied());
            let mut tries = 0;
            let mut begin: fn(&mut Pace) -> Slice = Pace::begin;
            told &= loop {
                tries += 1;
                let before = ancestry.seen();
                let done = self.any_slice(begin, |this, gil, slice| {
                    ancestry.step(gil, &this.walk, slice)
                })?;
                if ancestry.seen() < before + GOOD_PROGRESS {
                    begin = Pace::begin_long;
                }
                if done || tries >= MOST_LOOKS || self.pace.is_used_up() {
                    break done;
                }
                sleep(self.pace.rest());
            };
            for loose in left {
                if told && let Some((kind, words)) = ancestry.holder(loose) {
                    groups.add_words(kind, &words, loose.block);
                    findings[loose.block as usize] = Some(Finding::Told);
                }
            }
        }
        if !told {
            self.answer.notes.push(
                "the objects that no variable leads to were not searched: too many for one slice, \
                 or a Python before 3.12"
                    .into(),
            );
        }
        Ok(!told)
    }

    fn answer(
        mut self,
        reader: &mut Reader<'_>,
        mut partial: Option<String>,
    ) -> Result<Answer, Stop> {
        let mut findings = findings(&self.walk, &self.graphs, self.request.addresses.len());
        let missing: Vec<u32> = findings
            .iter()
            .enumerate()
            .filter(|(_, finding)| finding.is_none())
            .map(|(block, _)| block as u32)
            .collect();
        let mut groups = Groups::default();
        let mut unsettled = false;
        if partial.is_none() && !missing.is_empty() {
            unsettled = self.without_a_root(reader, &mut findings, &mut groups)?;
        }
        let mut next = 0;
        while next < findings.len() {
            self.slice(|this, gil, slice| {
                this.walk.begin(gil, reader);
                this.paths.begin();
                while next < findings.len() && !slice.is_over() {
                    let block = next as u32;
                    match findings[next] {
                        Some(Finding::At { kind, node, saved }) => {
                            let size = this.request.sizes.get(next).copied();
                            match this.paths.of(gil, &mut this.walk, node) {
                                Some(path) => groups.add(
                                    gil,
                                    &mut this.walk,
                                    &path,
                                    kind,
                                    node,
                                    saved,
                                    block,
                                    size,
                                ),
                                // It was let go while we searched.
                                None => groups.add_words(
                                    Kind::Unknown,
                                    "held when the search began, let go since",
                                    block,
                                ),
                            }
                        }
                        Some(Finding::Told) => {}
                        None if unsettled => {
                            groups.add_words(Kind::Unknown, UNSETTLED, block);
                        }
                        None if partial.is_some() => groups.add_words(Kind::Unknown, "", block),
                        None => groups.add_words(Kind::Native, "", block),
                    }
                    next += 1;
                }
            })?;
            if self.pace.is_used_up() && next < findings.len() {
                for block in next..findings.len() {
                    groups.add_words(Kind::Unknown, "", block as u32);
                }
                partial = Some(format!(
                    "the holders of {next} of {} blocks were named, then the time was used up; \
                     allow more with --budget",
                    findings.len()
                ));
                break;
            }
            if next < findings.len() {
                sleep(self.pace.rest());
            }
        }
        self.answer.holders = groups.finish(&self.graphs, reader);
        self.answer.partial = partial;
        self.answer.cost = crate::report::Cost {
            objects: self.walk.objects,
            tensors: self.walk.tensors,
            graph_nodes: self.graphs.nodes(),
            memory: self.walk.memory() + self.graphs.memory(),
            ..self.pace.cost()
        };
        Ok(self.answer)
    }
}

/// What is said of blocks that no variable leads to where nothing more could be learned.
const UNSETTLED: &str = "no variable of Python leads to it; whether it is garbage or held natively \
                         is not known";

/// What proves that a tensor keeps itself alive in C++.
fn cycle(loose: &Loose, reader: &mut Reader<'_>) -> Result<Option<String>, Stop> {
    let way = catch_unwind(AssertUnwindSafe(|| graph::cycle(loose.tensor, reader)))
        .map_err(|_| Stop::Broken)?;
    Ok(way.map(|way| {
        format!(
            "a cycle in C++, tensor -> {} -> the same tensor, as backward(create_graph=True) makes",
            grouping::cut(way).join(" -> ")
        )
    }))
}

/// The nearest way to each block: a tensor's own before its gradient, both before a graph.
fn findings(walk: &Walk, graphs: &Graphs, blocks: usize) -> Vec<Option<Finding>> {
    let mut findings = vec![None; blocks];
    for is_gradient in [false, true] {
        for hit in walk
            .hits
            .iter()
            .filter(|hit| hit.is_gradient == is_gradient)
        {
            let place = &mut findings[hit.block as usize];
            if place.is_none() {
                *place = Some(Finding::At {
                    kind: if is_gradient {
                        Kind::Gradient
                    } else {
                        Kind::Tensor
                    },
                    node: hit.node,
                    saved: None,
                });
            }
        }
    }
    for saved in &graphs.saved {
        let place = &mut findings[saved.block as usize];
        if place.is_none() {
            *place = Some(Finding::At {
                kind: Kind::Graph,
                node: graphs.source(saved.node).0,
                saved: Some(saved.node),
            });
        }
    }
    findings
}
