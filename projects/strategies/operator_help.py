"""Explains each operator with an example, for the condition form."""

_NUMBER = "Values that are not numbers never match."
_VERSION = "Compares semantic versions."

HELP = {
    "IN": "The whole value is one of these, for example country is one of NO, SE.",
    "NOT_IN": "The value is none of these, or missing, for example country is none of US.",
    "STR_STARTS_WITH": "The value begins with one of these, for example email with admin@.",
    "STR_ENDS_WITH": "The value ends with one of these, for example email with @example.com.",
    "STR_CONTAINS": "One of these is part of the value, for example userAgent with Firefox.",
    "NUM_EQ": f"The number is the same: 5 and 5.0 match. {_NUMBER}",
    "NUM_GT": f"The number is greater, not equal: above 18 starts after 18. {_NUMBER}",
    "NUM_GTE": f"The number is greater or equal: at least 18 includes 18. {_NUMBER}",
    "NUM_LT": f"The number is smaller, not equal: below 18 ends before 18. {_NUMBER}",
    "NUM_LTE": f"The number is smaller or equal: at most 18 includes 18. {_NUMBER}",
    "DATE_AFTER": "The time is later than this one (UTC), for example currentTime after the launch.",
    "DATE_BEFORE": "The time is earlier than this one (UTC), for example currentTime before the sale ends.",
    "SEMVER_EQ": f"{_VERSION} 1.2.3 matches 1.2.3 only.",
    "SEMVER_GT": f"{_VERSION} Above 1.2.3: 1.2.4 and 2.0.0 match, 1.2.3 does not.",
    "SEMVER_GTE": f"{_VERSION} At least 1.2.3: 1.2.3 and 1.10.0 match.",
    "SEMVER_LT": f"{_VERSION} Below 2.0.0: 1.9.9 and 2.0.0-beta match, 2.0.0 does not.",
    "SEMVER_LTE": f"{_VERSION} At most 2.0.0: 2.0.0 and 1.9.9 match.",
    "REGEX": "The pattern matches somewhere in the value: ^a+ matches aab. RE2 syntax.",
    "IN_CIDR": "The address is one of these or in one of these networks, for example 10.0.0.0/8.",
}
