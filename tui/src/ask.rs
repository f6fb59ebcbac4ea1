//! The key `h`: what holds the survivors of a site?

use vramscope_events::Layer;

use crate::{
    app::{App, Consent, Note},
    feed::{About, Asking},
    update::Effect,
};

/// Asks about the open site, after consent.
pub fn ask(app: &mut App) -> Option<Effect> {
    let refusal = refusal(app);
    if refusal.is_none() && app.consent == Consent::Given {
        return Some(Effect::Ask);
    }
    app.note = Some(match (refusal, &app.may_ask) {
        (Some(why), _) => Note {
            text: why,
            failed: true,
        },
        (None, Ok(what) | Err(what)) => {
            app.consent = Consent::Asked;
            Note {
                text: format!("h or y asks, any other key does not: {what}"),
                failed: false,
            }
        }
    });
    None
}

/// Takes the key that gives consent or not; `asks`: it is one that gives it.
pub fn answer(app: &mut App, asks: bool) -> Option<Effect> {
    app.consent = match asks {
        true => Consent::Given,
        false => Consent::NotAsked,
    };
    asks.then_some(Effect::Ask)
}

/// Why it cannot be asked now.
fn refusal(app: &App) -> Option<String> {
    if let Err(why) = &app.may_ask {
        return Some(why.clone());
    }
    if let Some(why) = &app.ended {
        return Some(format!("{why}: nobody is there to be asked"));
    }
    let by_framework = app.device().is_some_and(|device| device.tensor_layer);
    if app.layer == Layer::Driver || !by_framework {
        return Some("objects hold tensors, not what is taken from the driver: press t".into());
    }
    let waiting = |question: &crate::feed::Question| question.state == Asking::Waiting;
    if app.question.as_ref().is_some_and(waiting) {
        return Some("a question is being answered already: one at a time".into());
    }
    match about(app) {
        Some(_) => None,
        None => Some("nothing of this site survives: nothing holds it".into()),
    }
}

/// The open site as a question is about it.
pub fn about(app: &App) -> Option<About> {
    let open = app.site.as_ref()?;
    let row = app.table.of_group(open.group)?;
    let alive = app.table.members(row).filter(|site| site.live_blocks > 0);
    let sites: Vec<_> = alive.map(|site| site.id).collect();
    let (process, device) = app.process().zip(app.device())?;
    (!sites.is_empty()).then(|| About {
        process: process.info.pid,
        device: device.device,
        sites,
    })
}

/// What became of the question about the open site, where it was the last one.
pub fn state(app: &App) -> Option<&Asking> {
    let question = app.question.as_ref()?;
    let open = app.site.as_ref()?;
    let row = app.table.of_group(open.group)?;
    let mut members = app.table.members(row);
    let is_about = members.any(|site| question.about.sites.contains(&site.id));
    is_about.then_some(&question.state)
}
