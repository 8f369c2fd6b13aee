//! Made-up news in four languages: headlines, names, paragraphs. The words are
//! common ones, so that language detection has something true to find.

use serde::Serialize;

use crate::rng::Rng;

/// The languages in which sites publish, by their ISO 639-1 codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    En,
    De,
    Fr,
    Es,
}

impl Language {
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
            Self::Es => "es",
        }
    }

    fn words(self) -> &'static Words {
        match self {
            Self::En => &ENGLISH,
            Self::De => &GERMAN,
            Self::Fr => &FRENCH,
            Self::Es => &SPANISH,
        }
    }
}

struct Words {
    actors: &'static [&'static str],
    verbs: &'static [&'static str],
    things: &'static [&'static str],
    places: &'static [&'static str],
    joints: &'static [&'static str],
    tails: &'static [&'static str],
}

const ENGLISH: Words = Words {
    actors: &[
        "the council",
        "a group of farmers",
        "the harbour master",
        "local teachers",
        "the new mayor",
        "researchers",
        "two old friends",
        "the fishing fleet",
        "a retired engineer",
        "the night shift",
        "young musicians",
        "the museum",
    ],
    verbs: &[
        "wants to rebuild",
        "has voted on",
        "is looking again at",
        "will pay for",
        "cannot agree about",
        "has found",
        "is proud of",
        "has lost",
        "will open",
        "would rather keep",
    ],
    things: &[
        "the old bridge",
        "a plan for cheaper housing",
        "the last steam ferry",
        "an archive of letters",
        "the water supply",
        "a school without walls",
        "the winter market",
        "a map of the sea floor",
        "the railway line",
        "a small library",
    ],
    places: &[
        "in the north of the country",
        "behind the town hall",
        "on the island",
        "near the river",
        "in three villages",
        "at the edge of the forest",
        "along the coast",
        "under the market square",
    ],
    joints: &["because", "although", "while", "and", "after", "so that"],
    tails: &[
        "nobody had asked before",
        "the money was already there",
        "the weather turned",
        "people began to talk about it",
        "it took more than ten years",
        "the work is not finished yet",
        "there is still time to decide",
    ],
};

const GERMAN: Words = Words {
    actors: &[
        "der Stadtrat",
        "eine Gruppe von Bauern",
        "die Hafenmeisterin",
        "die Lehrer der Schule",
        "der neue Bürgermeister",
        "das Museum",
        "zwei alte Freunde",
        "die Fischer",
        "eine junge Ärztin",
        "das Orchester",
    ],
    verbs: &[
        "will endlich",
        "streitet über",
        "hat gestern",
        "freut sich auf",
        "bezahlt nun doch",
        "sucht seit Wochen",
        "verliert wohl",
        "öffnet bald",
        "prüft noch einmal",
    ],
    things: &[
        "die alte Brücke",
        "den Plan für günstige Wohnungen",
        "die letzte Dampffähre",
        "ein Archiv voller Briefe",
        "die Wasserversorgung",
        "den Weihnachtsmarkt",
        "die Bahnstrecke",
        "eine kleine Bücherei",
    ],
    places: &[
        "im Norden des Landes",
        "hinter dem Rathaus",
        "auf der Insel",
        "in der Nähe des Flusses",
        "in drei Dörfern",
        "am Rande des Waldes",
        "an der Küste",
    ],
    joints: &["weil", "obwohl", "während", "und", "nachdem", "damit"],
    tails: &[
        "niemand vorher gefragt hatte",
        "das Geld schon bereit lag",
        "das Wetter umschlug",
        "die Leute darüber reden",
        "es mehr als zehn Jahre gedauert hat",
        "die Arbeit noch nicht fertig ist",
    ],
};

const FRENCH: Words = Words {
    actors: &[
        "le conseil municipal",
        "un groupe d’agriculteurs",
        "la capitaine du port",
        "les enseignants",
        "le nouveau maire",
        "le musée",
        "deux vieux amis",
        "les pêcheurs",
        "une jeune médecin",
        "l’orchestre",
    ],
    verbs: &[
        "veut reconstruire",
        "a voté pour",
        "réfléchit encore à",
        "paiera enfin",
        "ne comprend pas",
        "a retrouvé",
        "est fier de",
        "a perdu",
        "va ouvrir",
    ],
    things: &[
        "le vieux pont",
        "un projet de logements",
        "le dernier ferry à vapeur",
        "des archives de lettres",
        "le réseau d’eau",
        "le marché d’hiver",
        "la ligne de chemin de fer",
        "une petite bibliothèque",
    ],
    places: &[
        "dans le nord du pays",
        "derrière la mairie",
        "sur l’île",
        "près de la rivière",
        "dans trois villages",
        "à la lisière de la forêt",
        "le long de la côte",
    ],
    joints: &[
        "parce que",
        "bien que",
        "pendant que",
        "et",
        "après que",
        "alors que",
    ],
    tails: &[
        "personne ne l’avait demandé",
        "l’argent était déjà là",
        "le temps a changé",
        "les gens en parlent",
        "cela a duré plus de dix ans",
        "le travail n’est pas fini",
    ],
};

const SPANISH: Words = Words {
    actors: &[
        "el ayuntamiento",
        "un grupo de agricultores",
        "la capitana del puerto",
        "los maestros",
        "el nuevo alcalde",
        "el museo",
        "dos viejos amigos",
        "los pescadores",
        "una joven médica",
        "la orquesta",
    ],
    verbs: &[
        "quiere reconstruir",
        "ha votado por",
        "vuelve a mirar",
        "pagará por fin",
        "no entiende",
        "ha encontrado",
        "está orgulloso de",
        "ha perdido",
        "va a abrir",
    ],
    things: &[
        "el puente viejo",
        "un plan de viviendas",
        "el último barco de vapor",
        "un archivo de cartas",
        "el suministro de agua",
        "el mercado de invierno",
        "la línea del tren",
        "una pequeña biblioteca",
    ],
    places: &[
        "en el norte del país",
        "detrás del ayuntamiento",
        "en la isla",
        "cerca del río",
        "en tres pueblos",
        "al borde del bosque",
        "a lo largo de la costa",
    ],
    joints: &[
        "porque",
        "aunque",
        "mientras",
        "y",
        "después de que",
        "cuando",
    ],
    tails: &[
        "nadie lo había pedido antes",
        "el dinero ya estaba allí",
        "el tiempo cambió",
        "la gente habla de ello",
        "tardó más de diez años",
        "el trabajo no ha terminado todavía",
    ],
};

const GIVEN: &[&str] = &[
    "Ada", "Bruno", "Clara", "David", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaia",
    "Luis", "Mina", "Noor", "Olga", "Pavel",
];
const FAMILY: &[&str] = &[
    "Abel",
    "Brandt",
    "Costa",
    "Dahl",
    "Engel",
    "Fabre",
    "García",
    "Holm",
    "Ivanova",
    "Jansen",
    "Keller",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petit",
];

/// The colours and nouns of which papers are named.
pub(crate) const FIRST_NAMES: &[&str] = &[
    "amber", "birch", "cedar", "coral", "dawn", "ember", "fern", "granite", "harbor", "indigo",
    "juniper", "keel", "lantern", "maple", "north", "ochre", "pine", "quarry", "river", "silver",
    "tidal", "umber", "valley", "willow",
];
pub(crate) const LAST_NAMES: &[&str] = &[
    "argus",
    "bulletin",
    "chronicle",
    "courier",
    "dispatch",
    "echo",
    "gazette",
    "herald",
    "journal",
    "ledger",
    "mercury",
    "observer",
    "post",
    "record",
    "sentinel",
    "standard",
    "times",
    "tribune",
];

pub(crate) const SECTIONS: &[&str] = &[
    "world", "politics", "business", "science", "culture", "sport", "local",
];

pub(crate) fn headline(rng: &mut Rng, language: Language) -> String {
    let words = language.words();
    let (actor, verb) = (rng.pick(words.actors), rng.pick(words.verbs));
    let (thing, place) = (rng.pick(words.things), rng.pick(words.places));
    let text = match rng.below(3) {
        0 => format!("{actor} {verb} {thing}"),
        1 => format!("{actor} {verb} {thing} {place}"),
        _ => format!("{thing}: {actor} {verb} {}", rng.pick(words.things)),
    };
    capitalised(&text)
}

pub(crate) fn author(rng: &mut Rng) -> String {
    format!("{} {}", rng.pick(GIVEN), rng.pick(FAMILY))
}

pub(crate) fn paragraph(rng: &mut Rng, language: Language) -> String {
    let sentences = rng.between(2, 5);
    let sentences: Vec<_> = (0..sentences).map(|_| sentence(rng, language)).collect();
    sentences.join(" ")
}

pub(crate) fn sentence(rng: &mut Rng, language: Language) -> String {
    let words = language.words();
    let start = format!(
        "{} {} {} {}",
        rng.pick(words.actors),
        rng.pick(words.verbs),
        rng.pick(words.things),
        rng.pick(words.places)
    );
    let start = capitalised(&start);
    if rng.random_bool(60) {
        format!(
            "{start}, {} {}.",
            rng.pick(words.joints),
            rng.pick(words.tails)
        )
    } else {
        format!("{start}.")
    }
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// A URL part made of a headline: lower-case ASCII words joined by hyphens.
pub(crate) fn slug(headline: &str) -> String {
    let mut slug = String::new();
    for word in headline.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !word.is_empty() && slug.len() < 60 {
            if !slug.is_empty() {
                slug.push('-');
            }
            slug.push_str(&word.to_ascii_lowercase());
        }
    }
    slug
}
