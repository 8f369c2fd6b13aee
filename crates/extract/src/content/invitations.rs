//! A run of invitations behind an article: join, follow, subscribe, write to us,
//! listen, download. One of them can be its last sentence; of a run, whatever
//! stands between them, none is part of the article.

use super::{Judge, Verdict};
use crate::blocks::{Block, Kind};

/// An invitation is shorter than this.
const MAX_INVITATION_SIZE: usize = 250;
/// Invitations that make a run.
const MIN_RUN: usize = 3;
/// What a line that is no invitation costs the run, in invitations.
const INTERRUPTION_COST: f32 = 1.2;
/// A paragraph of this size that invites to nothing ends the run.
const MIN_PARAGRAPH_SIZE: usize = 160;
/// The article is at least this share of the text, in tenths.
const MIN_ARTICLE_TENTHS: usize = 3;

impl Judge<'_, '_> {
    pub(super) fn drop_invitations(&mut self) {
        let kept: Vec<usize> = self.kept().collect();
        let total: usize = kept.iter().map(|index| self.blocks.list[*index].size).sum();
        let (mut sum, mut best, mut size) = (0.0_f32, 0.0_f32, 0);
        let (mut count, mut is_plain) = (0, false);
        let mut from = None;
        for &index in kept.iter().rev() {
            let block = &self.blocks.list[index];
            size += block.size;
            if size * 10 > total * (10 - MIN_ARTICLE_TENTHS) {
                break;
            }
            match (block.kind, invites(block)) {
                (Kind::Heading(_), _) => {}
                (Kind::Paragraph | Kind::Bare, Some(how)) => {
                    sum += 1.0;
                    count += 1;
                    is_plain |= how == Invitation::Plain;
                }
                (Kind::Paragraph | Kind::Bare, None) if leads_elsewhere(block) => sum += 0.5,
                (Kind::Paragraph | Kind::Bare, None) if block.size < MIN_PARAGRAPH_SIZE => {
                    sum -= INTERRUPTION_COST;
                }
                _ => break,
            }
            if sum > best && count >= MIN_RUN && is_plain {
                best = sum;
                from = Some(index);
            }
        }
        let Some(from) = from else { return };
        for index in kept.into_iter().filter(|index| *index >= from) {
            self.verdicts[index] = Verdict::Tail;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Invitation {
    /// To become a follower, a subscriber, a customer, a correspondent.
    Plain,
    /// To do something: a recipe does that, too.
    Perhaps,
}

/// It begins with what the reader should do, or shows an address.
fn invites(block: &Block) -> Option<Invitation> {
    if block.size >= MAX_INVITATION_SIZE {
        return None;
    }
    let first = block
        .text
        .split(|c: char| !c.is_alphanumeric() && c != '-')
        .find(|word| !word.is_empty())?
        .to_lowercase();
    if PLAIN.contains(&first.as_str()) || block.text.split_whitespace().any(is_address) {
        return Some(Invitation::Plain);
    }
    PERHAPS
        .contains(&first.as_str())
        .then_some(Invitation::Perhaps)
}

fn leads_elsewhere(block: &Block) -> bool {
    block.link_density() > 0.25 && block.size < 200
}

/// `www.daily.example`, `https://…`, `desk@daily.example`, `@thedaily`.
fn is_address(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '@');
    word.starts_with("www.")
        || word.contains("://")
        || word
            .split_once('@')
            .is_some_and(|(_, host)| host.starts_with(char::is_alphanumeric))
}

#[rustfmt::skip]
const PLAIN: &[&str] = &[
    // English
    "join", "follow", "subscribe", "sign", "email", "e-mail", "contact", "download", "register", "donate",
    "connect", "schedule",
    // German
    "abonnieren", "folgen", "folge", "kontaktieren", "registrieren", "unterstützen",
    // French
    "abonnez-vous", "inscrivez-vous", "suivez", "suivez-nous", "rejoignez", "téléchargez", "contactez",
    "contactez-nous", "soutenez",
    // Spanish, Italian, Portuguese, Dutch
    "suscríbete", "síguenos", "únete", "descarga", "contacta", "regístrate", "iscriviti", "seguici", "scarica",
    "contattaci", "unisciti", "inscreva-se", "siga", "assine", "baixe", "cadastre-se", "abonneer", "volg",
];

#[rustfmt::skip]
const PERHAPS: &[&str] = &[
    // English
    "visit", "check", "share", "thanks", "thank", "click", "book", "call", "try", "get", "start", "learn",
    "discover", "explore", "read", "watch", "listen", "want", "ready", "need", "interested", "looking", "help",
    "tell", "send", "find", "request", "create", "buy", "shop", "order", "support",
    // German
    "melden", "besuchen", "entdecken", "jetzt", "teilen", "lesen", "erfahren", "bestellen",
    // French
    "partagez", "découvrez", "lisez", "écoutez",
    // Spanish, Italian, Portuguese, Dutch
    "comparte", "descubre", "scopri", "condividi", "compartilhe", "descubra", "meld", "bekijk", "ontdek",
    "schrijf",
];

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_known_when_they_are_shown() {
        for word in [
            "www.daily.example",
            "(https://a.example/b)",
            "desk@daily.example,",
            "@thedaily",
        ] {
            assert!(is_address(word), "{word}");
        }
        for word in ["daily", "e.g.", "@", "50@", "and/or"] {
            assert!(!is_address(word), "{word}");
        }
    }
}
