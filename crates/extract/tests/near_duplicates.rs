//! Wire copies are found, other stories are not: a thousand stories, each with
//! a copy in which 5 to 20 % of the words were changed, and as many strangers.

use tidings_extract::{NearDuplicates, Signature};

/// A small generator; the tests are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }
}

/// Words as news uses them: some very often, most rarely.
fn word(dice: &mut Dice) -> String {
    let rank = dice.roll(60) * dice.roll(60) * dice.roll(20) / 40;
    format!("w{rank}")
}

fn story(dice: &mut Dice) -> Vec<String> {
    let length = 150 + dice.roll(650);
    (0..length).map(|_| word(dice)).collect()
}

/// Words replaced, left out or added, and the order of two sentences changed.
fn copy(dice: &mut Dice, story: &[String]) -> Vec<String> {
    let percent = 5 + dice.roll(16);
    let mut copy = Vec::with_capacity(story.len());
    for original in story {
        if dice.roll(100) >= percent {
            copy.push(original.clone());
            continue;
        }
        match dice.roll(3) {
            0 => copy.push(word(dice)),
            1 => {}
            _ => {
                copy.push(original.clone());
                copy.push(word(dice));
            }
        }
    }
    copy
}

#[test]
fn edited_copies_are_found_and_strangers_are_not() {
    let mut dice = Dice(7);
    let stories: Vec<Vec<String>> = (0..1_000).map(|_| story(&mut dice)).collect();
    let mut index = NearDuplicates::default();
    for story in &stories {
        index.insert(Signature::of(&story.join(" ")).expect("long enough"));
    }
    let (mut found, mut right, mut wrong) = (0, 0, 0);
    for (number, original) in stories.iter().enumerate() {
        let signature = Signature::of(&copy(&mut dice, original).join(" ")).expect("long enough");
        if let Some((twin, similarity)) = index.find(&signature) {
            found += 1;
            right += usize::from(twin == number);
            assert!(similarity <= 1.0);
        }
        let stranger = Signature::of(&story(&mut dice).join(" ")).expect("long enough");
        wrong += usize::from(index.find(&stranger).is_some());
    }
    let recall = right as f64 / stories.len() as f64;
    let precision = right as f64 / (found + wrong) as f64;
    assert!(recall >= 0.9, "recall {recall}");
    assert!(precision >= 0.95, "precision {precision}");
    println!("precision {precision:.4}, recall {recall:.4}");
}

#[test]
fn signatures_survive_storage_and_say_nothing_about_short_texts() {
    let text = "the council voted on monday to tear down the old bridge and to build a new one in its place";
    let signature = Signature::of(text).expect("long enough");
    assert_eq!(
        Signature::from_bytes(&signature.to_bytes()),
        Some(signature.clone())
    );
    assert_eq!(Signature::from_bytes(&[0; 7]), None);
    assert_eq!(Signature::of("too short to say anything"), None);
    let shouted = Signature::of(&text.to_uppercase()).expect("long enough");
    assert!((signature.similarity(&shouted) - 1.0).abs() < f32::EPSILON);
}

#[test]
fn scripts_without_spaces_are_compared_too() {
    let original = "市議会は月曜日、長年の議論の末に、港にかかる古い橋を取り壊し、新しい橋を建設することを賛成多数で可決した。橋は五月に閉鎖され、二年後に再び開通する予定である。";
    let edited = original
        .replace("月曜日", "火曜日")
        .replace("二年後", "三年後");
    let other = "春になると、古い学校の窓が開け放たれ、蜂の合唱団が中庭で練習を始める。近所の人々は話すのをやめて、二十二人の声に耳を傾ける。";
    let signature = |text: &str| Signature::of(text).expect("long enough");
    assert!(signature(original).similarity(&signature(&edited)) > 0.5);
    assert!(signature(original).similarity(&signature(other)) < 0.1);
}
