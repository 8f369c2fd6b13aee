//! Wire copies are found, other stories are not: a thousand stories, each with
//! copies in which 5 to 20 % of the words were changed, and as many unrelated stories.

use std::collections::HashMap;

use tidings_document::{ALIKE, Sketch};
use tidings_extract::sketch;

/// A small generator; the tests are the same every time.
struct Rng(u64);

impl Rng {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }
}

/// Words as news uses them: some very often, most rarely.
fn word(rng: &mut Rng) -> String {
    let rank = rng.below(60) * rng.below(60) * rng.below(20) / 40;
    format!("w{rank}")
}

fn story(rng: &mut Rng) -> Vec<String> {
    let length = 150 + rng.below(650);
    (0..length).map(|_| word(rng)).collect()
}

/// `percent` of the words replaced, left out, or followed by another.
fn copy(rng: &mut Rng, story: &[String], percent: usize) -> Vec<String> {
    let mut copy = Vec::with_capacity(story.len());
    for original in story {
        if rng.below(100) >= percent {
            copy.push(original.clone());
            continue;
        }
        match rng.below(3) {
            0 => copy.push(word(rng)),
            1 => {}
            _ => {
                copy.push(original.clone());
                copy.push(word(rng));
            }
        }
    }
    copy
}

/// The index of the stores, in memory.
#[derive(Default)]
struct Index {
    sketches: Vec<Sketch>,
    keys: HashMap<u64, Vec<usize>>,
}

impl Index {
    fn insert(&mut self, sketch: Sketch) {
        for key in sketch.keys() {
            self.keys.entry(*key).or_default().push(self.sketches.len());
        }
        self.sketches.push(sketch);
    }

    fn find(&self, sketch: &Sketch) -> Option<usize> {
        let under = sketch.sought().iter().filter_map(|key| self.keys.get(key));
        under
            .flatten()
            .map(|number| (sketch.similarity(&self.sketches[*number]), *number))
            .filter(|(similarity, _)| *similarity >= ALIKE)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, number)| number)
    }
}

fn sketch_of(words: &[String]) -> Sketch {
    sketch(&words.join(" ")).expect("long enough")
}

#[test]
fn edited_copies_are_found_and_unrelated_stories_are_not() {
    let mut rng = Rng(7);
    let stories: Vec<Vec<String>> = (0..1_000).map(|_| story(&mut rng)).collect();
    let mut index = Index::default();
    stories
        .iter()
        .for_each(|story| index.insert(sketch_of(story)));
    let (mut right, mut wrong, mut looked_for) = (0, 0, 0);
    for percent in [5, 10, 15, 20] {
        let mut right_here = 0;
        for (number, original) in stories.iter().enumerate() {
            match index.find(&sketch_of(&copy(&mut rng, original, percent))) {
                Some(found) if found == number => right_here += 1,
                Some(_) => wrong += 1,
                None => {}
            }
            let unrelated = sketch_of(&story(&mut rng));
            wrong += usize::from(index.find(&unrelated).is_some());
        }
        let recall = f64::from(right_here) / stories.len() as f64;
        println!("{percent} % edited: recall {recall:.3}");
        assert!(recall >= 0.9, "{percent} % edited: recall {recall}");
        right += right_here;
        looked_for += stories.len();
    }
    let recall = f64::from(right) / looked_for as f64;
    let precision = f64::from(right) / (f64::from(right) + wrong as f64);
    println!("precision {precision:.4}, recall {recall:.4}");
    assert!(recall >= 0.97, "recall {recall}");
    assert!(precision >= 0.99, "precision {precision}");
}

#[test]
fn case_and_punctuation_change_nothing_and_short_texts_have_no_sketch() {
    let text = "the council voted on monday to tear down the old bridge and to build a new one in its place";
    let whole = sketch(text).expect("long enough");
    let shouted = sketch(&text.to_uppercase().replace(' ', " - ")).expect("long enough");
    assert_eq!(whole, shouted);
    assert_eq!(sketch("too short to say anything"), None);
    assert_eq!(sketch(""), None);
}

#[test]
fn the_order_of_words_counts() {
    let forth: Vec<String> = (0..200).map(|n| format!("word{n}")).collect();
    let back: Vec<String> = forth.iter().rev().cloned().collect();
    assert!(sketch_of(&forth).similarity(&sketch_of(&back)) < 0.01);
}

#[test]
fn scripts_without_spaces_are_compared_too() {
    let original = "市議会は月曜日、長年の議論の末に、港にかかる古い橋を取り壊し、新しい橋を建設することを賛成多数で可決した。橋は五月に閉鎖され、二年後に再び開通する予定である。";
    let edited = original
        .replace("月曜日", "火曜日")
        .replace("二年後", "三年後");
    let other = "春になると、古い学校の窓が開け放たれ、蜂の合唱団が中庭で練習を始める。近所の人々は話すのをやめて、二十二人の声に耳を傾ける。";
    let signed = |text: &str| sketch(text).expect("long enough");
    assert!(signed(original).similarity(&signed(&edited)) > 0.5);
    assert!(signed(original).similarity(&signed(other)) < 0.1);
}
