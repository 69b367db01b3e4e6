//! The tables of English inflection.
//!
//! They hold the knowledge of `pluralize` 8.0.0, in a form of their own: MIT licence, copyright (c) 2013
//! Blake Embrey; its text is in `tests/fixtures/words/LICENSE`.

/// Replaces an ending after one of some stems. The pattern language is that of `match_end`.
pub(super) struct Rule {
    /// What stands before the ending and stays.
    pub(super) stems: &'static [&'static str],
    /// The endings it replaces.
    pub(super) endings: &'static [&'static str],
    /// The new ending.
    pub(super) becomes: &'static str,
}

#[rustfmt::skip]
const FROM_US: &[&str] = &[
    "alumn", "syllab", "vir", "radi", "nucle", "fung", "cact", "stimul", "termin", "bacill",
    "foc", "uter", "loc", "strat",
];

#[rustfmt::skip]
const FROM_UM: &[&str] = &[
    "agend", "addend", "millenni", "dat", "extrem", "bacteri", "desiderat", "strat",
    "candelabr", "errat", "ov", "symposi", "curricul", "automat", "quor",
];

#[rustfmt::skip]
const FROM_UM_ONE: &[&str] = &[
    "agend", "addend", "millenni", "dat", "extrem", "bacteri", "desiderat", "strat",
    "candelabr", "errat", "ov", "symposi", "curricul", "quor",
];

#[rustfmt::skip]
const FROM_ON: &[&str] = &[
    "apheli", "hyperbat", "periheli", "asyndet", "noumen", "phenomen", "criteri", "organ",
    "prolegomen", "hedr", "automat",
];

/// From one to many; the last rule that matches counts.
#[rustfmt::skip]
pub(super) const PLURAL: &[Rule] = &[
    Rule { stems: &[""], endings: &["s", ""], becomes: "s" },
    Rule { stems: &["[^\\a]"], endings: &[""], becomes: "" },
    Rule { stems: &["[^aeiou]ese"], endings: &[""], becomes: "" },
    Rule { stems: &["ax", "test"], endings: &["is"], becomes: "es" },
    Rule { stems: &["alias", "[^aou]us", "t[lm]as", "gas", "ris"], endings: &[""], becomes: "es" },
    Rule { stems: &["e[mn]u"], endings: &["s", ""], becomes: "s" },
    Rule { stems: &["[^l]ias", "[aeiou]las", "[ejzr]as", "[iu]am"], endings: &[""], becomes: "" },
    Rule { stems: FROM_US, endings: &["us", "i"], becomes: "i" },
    Rule { stems: &["alumn", "alg", "vertebr"], endings: &["a", "ae"], becomes: "ae" },
    Rule { stems: &["seraph", "cherub"], endings: &["im", ""], becomes: "im" },
    Rule { stems: &["her", "at", "gr"], endings: &["o"], becomes: "oes" },
    Rule { stems: FROM_UM, endings: &["a", "um"], becomes: "a" },
    Rule { stems: FROM_ON, endings: &["a", "on"], becomes: "a" },
    Rule { stems: &[""], endings: &["sis"], becomes: "ses" },
    Rule { stems: &["kni", "wi", "li"], endings: &["fe"], becomes: "ves" },
    Rule { stems: &["ar", "l", "ea", "eo", "oa", "hoo"], endings: &["f"], becomes: "ves" },
    Rule { stems: &["[^aeiouy]", "qu"], endings: &["y"], becomes: "ies" },
    Rule { stems: &["[^ch][ieo][ln]"], endings: &["ey"], becomes: "ies" },
    Rule { stems: &["x", "ch", "ss", "sh", "zz"], endings: &[""], becomes: "es" },
    Rule {
        stems: &["matr", "cod", "mur", "sil", "vert", "ind", "append"], endings: &["ix", "ex"],
            becomes: "ices",
    },
    Rule { stems: &["\\btitm", "\\bm", "\\bl"], endings: &["ice", "ouse"], becomes: "ice" },
    Rule { stems: &["pe"], endings: &["rson", "ople"], becomes: "ople" },
    Rule { stems: &["child"], endings: &["ren", ""], becomes: "ren" },
    Rule { stems: &["eaux"], endings: &[""], becomes: "" },
    Rule { stems: &["m"], endings: &["an", "en"], becomes: "en" },
    Rule { stems: &["^"], endings: &["thou"], becomes: "you" },
];

/// From many to one; the last rule that matches counts.
#[rustfmt::skip]
pub(super) const SINGULAR: &[Rule] = &[
    Rule { stems: &[""], endings: &["s"], becomes: "" },
    Rule { stems: &["ss"], endings: &[""], becomes: "" },
    Rule {
        stems: &["wi", "kni", "afterli", "halfli", "highli", "lowli", "midli", "nonli",
            "nightli", "[^\\w]li", "^li"], endings: &["ves"], becomes: "fe",
    },
    Rule { stems: &["ar", "wol", "[ae]l", "[eo][ao]"], endings: &["ves"], becomes: "f" },
    Rule { stems: &[""], endings: &["ies"], becomes: "y" },
    Rule {
        stems: &["\\b[pl]", "\\bzomb", "\\bneckt", "\\bcrosst", "\\bt", "\\bcoll", "\\bfaer",
            "\\bfood", "\\bgen", "\\bgoon", "\\bgroup", "\\blass", "\\btalk", "\\bgoal",
            "\\bcut"], endings: &["ies"], becomes: "ie",
    },
    Rule { stems: &["\\bmon", "\\bsmil"], endings: &["ies"], becomes: "ey" },
    Rule { stems: &["\\btitm", "\\bm", "\\bl"], endings: &["ice"], becomes: "ouse" },
    Rule { stems: &["seraph", "cherub"], endings: &["im"], becomes: "" },
    Rule {
        stems: &["x", "ch", "ss", "sh", "zz", "tto", "go", "cho", "alias", "[^aou]us",
            "t[lm]as", "gas", "hero", "ato", "gro", "[aeiou]ris"], endings: &["es", ""],
            becomes: "",
    },
    Rule {
        stems: &["analy", "diagno", "parenthe", "progno", "synop", "the", "empha", "cri", "ne"],
            endings: &["sis", "ses"], becomes: "sis",
    },
    Rule { stems: &["movie", "twelve", "abuse", "e[mn]u"], endings: &["s"], becomes: "" },
    Rule { stems: &["test"], endings: &["is", "es"], becomes: "is" },
    Rule { stems: FROM_US, endings: &["us", "i"], becomes: "us" },
    Rule { stems: FROM_UM_ONE, endings: &["a"], becomes: "um" },
    Rule { stems: FROM_ON, endings: &["a"], becomes: "on" },
    Rule { stems: &["alumn", "alg", "vertebr"], endings: &["ae"], becomes: "a" },
    Rule { stems: &["cod", "mur", "sil", "vert", "ind"], endings: &["ices"], becomes: "ex" },
    Rule { stems: &["matr", "append"], endings: &["ices"], becomes: "ix" },
    Rule { stems: &["pe"], endings: &["rson", "ople"], becomes: "rson" },
    Rule { stems: &["child"], endings: &["ren"], becomes: "" },
    Rule { stems: &["eau"], endings: &["x", ""], becomes: "" },
    Rule { stems: &["m"], endings: &["en"], becomes: "an" },
];

/// Words of their own, one and many.
#[rustfmt::skip]
pub(super) const IRREGULAR: &[(&str, &str)] = &[
    ("i", "we"), ("me", "us"), ("he", "they"), ("she", "they"), ("them", "them"),
    ("myself", "ourselves"), ("yourself", "yourselves"), ("itself", "themselves"),
    ("herself", "themselves"), ("himself", "themselves"), ("themself", "themselves"),
    ("is", "are"), ("was", "were"), ("has", "have"), ("this", "these"), ("that", "those"),
    ("echo", "echoes"), ("dingo", "dingoes"), ("volcano", "volcanoes"),
    ("tornado", "tornadoes"), ("torpedo", "torpedoes"), ("genus", "genera"),
    ("viscus", "viscera"), ("stigma", "stigmata"), ("stoma", "stomata"), ("dogma", "dogmata"),
    ("lemma", "lemmata"), ("schema", "schemata"), ("anathema", "anathemata"), ("ox", "oxen"),
    ("axe", "axes"), ("die", "dice"), ("yes", "yeses"), ("foot", "feet"), ("eave", "eaves"),
    ("goose", "geese"), ("tooth", "teeth"), ("quiz", "quizzes"), ("human", "humans"),
    ("proof", "proofs"), ("carve", "carves"), ("valve", "valves"), ("looey", "looies"),
    ("thief", "thieves"), ("groove", "grooves"), ("pickaxe", "pickaxes"),
    ("passerby", "passersby"),
];

/// Words that have no plural.
#[rustfmt::skip]
pub(super) const UNCOUNTABLE: &[&str] = &[
    "adulthood", "advice", "agenda", "aid", "aircraft", "alcohol", "ammo", "analytics", "anime",
    "athletics", "audio", "bison", "blood", "bream", "buffalo", "butter", "carp", "cash",
    "chassis", "chess", "clothing", "cod", "commerce", "cooperation", "corps", "debris",
    "diabetes", "digestion", "elk", "energy", "equipment", "excretion", "expertise", "firmware",
    "flounder", "fun", "gallows", "garbage", "graffiti", "hardware", "headquarters", "health",
    "herpes", "highjinks", "homework", "housework", "information", "jeans", "justice", "kudos",
    "labour", "literature", "machinery", "mackerel", "mail", "media", "mews", "moose", "music",
    "mud", "manga", "news", "only", "personnel", "pike", "plankton", "pliers", "police",
    "pollution", "premises", "rain", "research", "rice", "salmon", "scissors", "series",
    "sewage", "shambles", "shrimp", "software", "species", "staff", "swine", "tennis",
    "traffic", "transportation", "trout", "tuna", "wealth", "welfare", "whiting", "wildebeest",
    "wildlife", "you",
];

/// Endings of words that have no plural.
#[rustfmt::skip]
pub(super) const UNCOUNTABLE_ENDINGS: &[&str] = &[
    "pok[eé]mon", "[^aeiou]ese", "deer", "fish", "measles", "o[iu]s", "pox", "sheep",
];
