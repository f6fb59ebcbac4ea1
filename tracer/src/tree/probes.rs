//! One list of probes for a session of several processes.

use std::collections::HashMap;

use vramscope_events::{Pid, ProbeState, ProbeView};

/// The probes of all processes, by name in the order of the first process. Where processes differ
/// it says in how many a probe is in place; a probe that the kernel refused to one of them is shown
/// as refused.
pub fn merged<'a>(processes: impl IntoIterator<Item = (Pid, &'a [ProbeView])>) -> Vec<ProbeView> {
    let mut names: Vec<&str> = Vec::new();
    let mut by_name: HashMap<&str, Vec<(Pid, &ProbeView)>> = HashMap::new();
    let mut count = 0;
    for (pid, probes) in processes {
        count += 1;
        for probe in probes {
            let views = by_name.entry(&probe.name).or_insert_with(|| {
                names.push(&probe.name);
                Vec::new()
            });
            views.push((pid, probe));
        }
    }
    names
        .iter()
        .map(|name| merge(&by_name[name], count))
        .collect()
}

fn merge(views: &[(Pid, &ProbeView)], count: usize) -> ProbeView {
    let with =
        |wanted: fn(&ProbeState) -> bool| views.iter().filter(move |(_, v)| wanted(&v.state));
    let attached = |state: &ProbeState| matches!(state, ProbeState::Attached);
    let placed = with(attached).count();
    let refused = with(|state| matches!(state, ProbeState::Failed { .. }));
    let mut view = if let Some((pid, failed)) = refused.clone().next() {
        let mut view = ProbeView::clone(failed);
        if let ProbeState::Failed { reason } = &mut view.state
            && count > 1
        {
            *reason = format!(
                "in {} of {count} processes, such as {pid}: {reason}",
                refused.count()
            );
        }
        return view;
    } else if let Some((_, attached)) = with(attached).next() {
        ProbeView::clone(attached)
    } else {
        return ProbeView::clone(views[0].1);
    };
    if placed < count {
        view.cost_note = format!("{}; in {placed} of {count} processes", view.cost_note);
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, state: ProbeState) -> ProbeView {
        ProbeView {
            name: name.into(),
            state,
            cost_note: "push at +7".into(),
        }
    }

    #[test]
    fn processes_that_differ_are_counted() {
        let absent = ProbeState::Absent {
            consequence: "nothing is seen".into(),
        };
        let failed = ProbeState::Failed {
            reason: "no room".into(),
        };
        let first = [
            view("a", ProbeState::Attached),
            view("b", absent.clone()),
            view("c", ProbeState::Attached),
            view("d", absent.clone()),
        ];
        let second = [
            view("a", ProbeState::Attached),
            view("b", ProbeState::Attached),
            view("c", failed),
            view("d", absent.clone()),
        ];
        let alone = merged([(Pid(1), &first[..])]);
        assert_eq!(alone, first);
        let both = merged([(Pid(1), &first[..]), (Pid(2), &second[..])]);
        assert_eq!(both[0], first[0]);
        assert_eq!(both[1].state, ProbeState::Attached);
        assert_eq!(both[1].cost_note, "push at +7; in 1 of 2 processes");
        let ProbeState::Failed { reason } = &both[2].state else {
            panic!("{both:?}");
        };
        assert_eq!(reason, "in 1 of 2 processes, such as 2: no room");
        assert_eq!(both[3], first[3]);
    }
}
