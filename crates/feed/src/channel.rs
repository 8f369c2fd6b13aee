//! What a feed says about itself, in the making: the channel of RSS, the head
//! of Atom. Items have nothing to do with it.

use crate::draft::best;
use crate::element::Element;
use crate::field::Field;
use crate::model::{Feed, Format, UpdatePeriod};

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) feed: Feed,
    title: u8,
    description: u8,
    updated: u8,
}

impl Channel {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            feed: Feed::empty(format),
            title: 0,
            description: 0,
            updated: 0,
        }
    }

    pub(crate) fn set(&mut self, field: &Field<'_>) {
        let feed = &mut self.feed;
        match field.element {
            Element::Title(rank) => best(&mut self.title, rank, &mut feed.title, || field.line()),
            Element::Summary(rank) => {
                best(&mut self.description, rank, &mut feed.description, || {
                    field.line()
                });
            }
            Element::Updated(rank) => {
                best(&mut self.updated, rank, &mut feed.updated, || field.date());
            }
            Element::Published(_) => {
                best(&mut self.updated, 1, &mut feed.updated, || field.date());
            }
            Element::Language => first(&mut feed.language, || field.line()),
            Element::Generator => first(&mut feed.generator, || field.line()),
            Element::Ttl => first(&mut feed.ttl_minutes, || field.number()),
            Element::SkipHours => {
                let hours = field.children();
                let hours = hours.iter().filter_map(|hour| hour.parse().ok());
                // Some count 1 to 24.
                feed.skip_hours = hours.map(|hour: u8| hour % 24).collect();
                feed.skip_hours.sort_unstable();
                feed.skip_hours.dedup();
            }
            Element::SkipDays => {
                let mut days = field.children();
                days.truncate(7);
                feed.skip_days = days;
            }
            Element::UpdatePeriod => {
                first(&mut feed.update_period, || {
                    UpdatePeriod::parse(&field.value)
                });
            }
            Element::UpdateFrequency => first(&mut feed.update_frequency, || field.number()),
            _ => {}
        }
    }

    /// A link of the feed, resolved already. RSS links have no relation.
    pub(crate) fn link(&mut self, relation: &str, url: String) {
        let feed = &mut self.feed;
        if url.is_empty() {
            return;
        }
        match relation {
            "" | "alternate" => first(&mut feed.home_page, || Some(url)),
            "self" => first(&mut feed.self_url, || Some(url)),
            "next" => first(&mut feed.next_page, || Some(url)),
            "hub" if !feed.hubs.contains(&url) && feed.hubs.len() < 8 => feed.hubs.push(url),
            _ => {}
        }
    }

    pub(crate) fn image(&mut self, url: String) {
        if !url.is_empty() {
            first(&mut self.feed.image, || Some(url));
        }
    }
}

fn first<T>(slot: &mut Option<T>, value: impl FnOnce() -> Option<T>) {
    if slot.is_none() {
        *slot = value();
    }
}
