//! The query parameters that say how a reader came to a page, never which page
//! it is. Only unmistakable names belong here: a name that any site uses for
//! content would merge two articles into one.

/// Longest name in [`is_tracking`]'s table; longer ones match by prefix only.
const MAX_NAME_BYTES: usize = 20;

/// Whether a parameter of this name is stripped from every canonical URL.
/// Names are compared without regard to case.
pub(crate) fn is_tracking(name: &str) -> bool {
    if has_prefix(name, "utm_") || has_prefix(name, "mtm_") {
        return true;
    }
    let mut buffer = [0; MAX_NAME_BYTES];
    let Some(lower) = buffer.get_mut(..name.len()) else {
        return false;
    };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    matches!(
        &*lower,
        // Where the link stood
        b"ref"
            | b"cmpid"
            | b"ncid"
            | b"xtor"
            | b"spm"
            | b"_openstat"
            | b"pk_campaign"
            | b"pk_kwd"
            | b"guccounter"
            | b"guce_referrer"
            | b"guce_referrer_sig"
            | b"__twitter_impression"
            // Click ids of advertisers
            | b"gclid"
            | b"gclsrc"
            | b"gbraid"
            | b"wbraid"
            | b"gad_source"
            | b"gad_campaignid"
            | b"dclid"
            | b"srsltid"
            | b"msclkid"
            | b"yclid"
            | b"ysclid"
            | b"irclickid"
            | b"wickedid"
            | b"dicbo"
            | b"epik"
            // Social networks
            | b"fbclid"
            | b"fb_action_ids"
            | b"fb_action_types"
            | b"igshid"
            | b"igsh"
            | b"twclid"
            | b"ttclid"
            | b"rdt_cid"
            | b"li_fat_id"
            // Newsletters and marketing suites
            | b"mc_cid"
            | b"mc_eid"
            | b"_ga"
            | b"_gl"
            | b"_kx"
            | b"_hsenc"
            | b"_hsmi"
            | b"__hssc"
            | b"__hstc"
            | b"__hsfp"
            | b"hsctatracking"
            | b"mkt_tok"
            | b"vero_id"
            | b"oly_enc_id"
            | b"oly_anon_id"
            | b"ml_subscriber"
            | b"ml_subscriber_hash"
            | b"ck_subscriber_id"
    )
}

/// Whether `name` matches a source's own pattern: a name, or a prefix and `*`.
pub(crate) fn matches_pattern(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => has_prefix(name, prefix),
        None => name.eq_ignore_ascii_case(pattern),
    }
}

fn has_prefix(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::{is_tracking, matches_pattern};

    #[test]
    fn names_are_compared_without_case() {
        for name in [
            "ref",
            "REF",
            "utm_",
            "UTM_Source",
            "fbClid",
            "__Twitter_Impression",
        ] {
            assert!(is_tracking(name), "{name}");
        }
    }

    #[test]
    fn names_that_only_look_like_tracking_are_kept() {
        let names = [
            "",
            "refer",
            "reference",
            "utm",
            "xutm_a",
            "gclid2",
            "id",
            "ga",
            "si",
        ];
        for name in names {
            assert!(!is_tracking(name), "{name}");
        }
        assert!(!is_tracking(&"x".repeat(500)));
    }

    #[test]
    fn a_pattern_is_a_name_or_a_prefix() {
        let rows = [
            ("session", "session", true),
            ("Session", "sESSION", true),
            ("session2", "session", false),
            ("at_medium", "at_*", true),
            ("at", "at_*", false),
            ("anything", "*", true),
        ];
        for (name, pattern, expected) in rows {
            assert_eq!(
                matches_pattern(name, pattern),
                expected,
                "{name} ~ {pattern}"
            );
        }
    }
}
