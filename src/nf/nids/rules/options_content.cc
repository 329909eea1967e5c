// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// content and its modifiers, and pcre. Valid combinations are Suricata's.

#include <algorithm>
#include <array>
#include <limits>

#include "nf/nids/rules/options.h"

namespace penstock::nids {

namespace {

constexpr std::int64_t kMostDistance = 1024 * 1024;

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// `abc|20 0d|d\;e`: bytes between bars are hexadecimal; `: ; \ "` are escaped with a backslash.
bool read_bytes(RuleDraft& draft, std::string_view text, std::vector<std::uint8_t>& out) {
  bool in_hex = false;
  int high = -1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view here = text.substr(i, 1);
    if (c == '|') {
      if (in_hex && high >= 0)
        return draft.fail(here, "odd number of hexadecimal digits", in_quotes(text), "two digits");
      in_hex = !in_hex;
    } else if (in_hex) {
      if (c == ' ' || c == ',') continue;
      const int digit = hex_digit(c);
      if (digit < 0) return draft.fail(here, "not hexadecimal", in_quotes(here), "two digits for each byte, or |");
      if (high < 0) {
        high = digit;
      } else {
        out.push_back(static_cast<std::uint8_t>(high * 16 + digit));
        high = -1;
      }
    } else if (c == '\\') {
      const char escaped = i + 1 < text.size() ? text[i + 1] : '\0';
      if (escaped != ':' && escaped != ';' && escaped != '\\' && escaped != '"') {
        return draft.fail(here, "wrong escape", in_quotes(text.substr(i, 2)), "\\: \\; \\\\ or \\\"");
      }
      out.push_back(static_cast<std::uint8_t>(escaped));
      ++i;
    } else if (c == '"') {
      return draft.fail(here, "unescaped quote in the content", in_quotes(text), "\\\"");
    } else {
      out.push_back(static_cast<std::uint8_t>(c));
    }
  }
  if (in_hex) return draft.fail(text, "unclosed hexadecimal bytes", in_quotes(text), "|");
  if (out.empty()) return draft.fail(text, "empty content", "", "at least one byte");
  return true;
}

Content* content_before(RuleDraft& draft, const OptionValue& value) {
  Content* content = draft.last_content();
  if (content == nullptr) draft.fail_combination(value.name, "modifier without a content", "a content before it");
  return content;
}

bool once(RuleDraft& draft, const OptionValue& value, bool is_there) {
  return !is_there || draft.fail_combination(value.name, "given twice for the same content");
}

/// offset and depth count from the start of the buffer, distance and within from the previous match. They exclude each
/// other.
bool only_absolute(RuleDraft& draft, const OptionValue& value, const Content& content) {
  if (content.distance || content.within) {
    return draft.fail_combination(value.name, "offset or depth together with distance or within");
  }
  if (content.starts_with) return draft.fail_combination(value.name, "offset or depth together with startswith");
  return true;
}
bool only_relative(RuleDraft& draft, const OptionValue& value, const Content& content) {
  if (content.starts_with) return draft.fail_combination(value.name, "distance or within together with startswith");
  if (content.offset || content.depth) {
    return draft.fail_combination(value.name, "distance or within together with offset or depth");
  }
  return true;
}

bool not_with_fast_pattern(RuleDraft& draft, const OptionValue& value, const Content& content) {
  if (content.negated && content.fast_pattern) {
    return draft.fail_combination(value.name, "position for a negated content that is the fast_pattern");
  }
  if (content.fast_pattern_only) {
    return draft.fail_combination(value.name, "position for a content that is fast_pattern:only");
  }
  return true;
}

bool not_behind_fast_pattern_only(RuleDraft& draft, std::string_view at, const BufferMatch* before) {
  const Content* content = before == nullptr ? nullptr : std::get_if<Content>(before);
  return content == nullptr || !content->fast_pattern_only ||
         draft.fail_combination(at, "relative to a content that is fast_pattern:only");
}

/// The content or pcre before the last content.
const BufferMatch* cursor_before_content(RuleDraft& draft) {
  const std::vector<BufferMatch>& all = draft.last_content_buffer();
  for (std::size_t i = draft.last_content_index(); i > 0; --i) {
    if (std::holds_alternative<Content>(all[i - 1]) || std::holds_alternative<Pcre>(all[i - 1])) return &all[i - 1];
  }
  return nullptr;
}

/// Snort's modifiers after the content: `content:"x", nocase, depth 5`.
bool read_modifiers(RuleDraft& draft, std::string_view rest) {
  if (trimmed(rest).empty()) return true;
  if (!trimmed(rest).starts_with(','))
    return draft.fail(rest, "unexpected text after the content", in_quotes(rest), ", or ;");
  for (const std::string_view field : split_fields(trimmed(rest).substr(1))) {
    struct Modifier {
      std::string_view name;
      OptionReader read;
      bool has_value;
    };
    static constexpr std::array<Modifier, 9> kModifiers{{{"nocase", read_nocase, false},
                                                         {"rawbytes", read_rawbytes, false},
                                                         {"offset", read_offset, true},
                                                         {"depth", read_depth, true},
                                                         {"distance", read_distance, true},
                                                         {"within", read_within, true},
                                                         {"fast_pattern", read_fast_pattern, false},
                                                         {"startswith", read_startswith, false},
                                                         {"endswith", read_endswith, false}}};
    const std::size_t space = field.find_first_of(" \t");
    const std::string_view name = field.substr(0, space);
    const auto modifier = std::find_if(kModifiers.begin(), kModifiers.end(),
                                       [&](const Modifier& m) { return equals_ignoring_case(m.name, name); });
    const bool has_value = space != field.npos;
    if (modifier == kModifiers.end() || modifier->has_value != has_value) {
      return draft.fail(field, "unknown content modifier", in_quotes(field), "nocase, offset 5, within 4 …");
    }
    OptionValue value;
    value.name = name;
    if (has_value) value.text = trimmed(field.substr(space));
    if (!modifier->read(draft, value)) return false;
  }
  return true;
}

/// The buffer that a pcre flag names; empty if it names none.
std::string_view buffer_of_flag(char flag) noexcept {
  switch (flag) {
    case 'U': return "http.uri";
    case 'I': return "http.uri.raw";
    case 'P': return "http.request_body";
    case 'Q': return "http.response_body";
    case 'H': return "http.header";
    case 'D': return "http.header.raw";
    case 'M': return "http.method";
    case 'C':
    case 'K': return "http.cookie";
    case 'S': return "http.stat_code";
    case 'Y': return "http.stat_msg";
    case 'V': return "http.user_agent";
    case 'W': return "http.host";
    case 'Z': return "http.host.raw";
    default: return {};
  }
}

/// The end of the expression: the last unescaped slash.
std::size_t closing_slash(std::string_view text) noexcept {
  for (std::size_t at = text.rfind('/'); at != text.npos && at > 0; at = text.rfind('/', at - 1)) {
    std::size_t backslashes = 0;
    while (backslashes < at && text[at - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return at;
  }
  return text.npos;
}

}  // namespace

bool read_content(RuleDraft& draft, const OptionValue& value) {
  Content content;
  content.negated = value.negated;
  if (!read_bytes(draft, value.text, content.bytes)) return false;
  draft.add(std::move(content));
  return read_modifiers(draft, value.rest);
}

bool read_nocase(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->nocase)) return false;
  content->nocase = true;
  return true;
}

/// No effect: decoded data (of Snort's preprocessors) are in separate buffers.
bool read_rawbytes(RuleDraft& draft, const OptionValue& value) { return content_before(draft, value) != nullptr; }

bool read_offset(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->offset.has_value()) ||
      !only_absolute(draft, value, *content) || !not_with_fast_pattern(draft, value, *content)) {
    return false;
  }
  Number offset;
  if (!read_number(draft, value.text, 0, 0xffff, "offset", offset)) return false;
  content->offset = offset;
  return true;
}

bool read_depth(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->depth.has_value()) || !only_absolute(draft, value, *content) ||
      !not_with_fast_pattern(draft, value, *content)) {
    return false;
  }
  Number depth;
  if (!read_number(draft, value.text, 0, 0xffff, "depth", depth)) return false;
  const auto length = static_cast<std::int64_t>(content->bytes.size());
  if (depth.variable < 0 && depth.value < length) {
    return draft.fail(value.text, "depth less than the content's length", in_quotes(value.text),
                      "at least " + std::to_string(length), "value");
  }
  content->depth = depth;
  return true;
}

bool read_distance(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->distance.has_value()) ||
      !only_relative(draft, value, *content) || !not_with_fast_pattern(draft, value, *content)) {
    return false;
  }
  Number distance;
  if (!read_number(draft, value.text, -kMostDistance, kMostDistance, "distance", distance)) return false;
  content->distance = distance;
  return not_behind_fast_pattern_only(draft, value.name, cursor_before_content(draft));
}

bool read_within(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->within.has_value()) ||
      !only_relative(draft, value, *content) || !not_with_fast_pattern(draft, value, *content)) {
    return false;
  }
  Number within;
  if (!read_number(draft, value.text, -kMostDistance, kMostDistance, "within", within)) return false;
  const auto length = static_cast<std::int64_t>(content->bytes.size());
  if (within.variable < 0 && within.value < length) {
    return draft.fail(value.text, "within less than the content's length", in_quotes(value.text),
                      "at least " + std::to_string(length), "value");
  }
  content->within = within;
  return not_behind_fast_pattern_only(draft, value.name, cursor_before_content(draft));
}

bool read_startswith(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->starts_with)) return false;
  if (content->offset || content->depth || content->distance || content->within) {
    return draft.fail_combination(value.name, "startswith together with offset, depth, distance or within");
  }
  if (!not_with_fast_pattern(draft, value, *content)) return false;
  content->starts_with = true;
  content->offset = Number{0, -1};
  content->depth = Number{static_cast<std::int64_t>(content->bytes.size()), -1};
  return true;
}

bool read_endswith(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->ends_with) || !not_with_fast_pattern(draft, value, *content)) {
    return false;
  }
  content->ends_with = true;
  return true;
}

bool read_fast_pattern(RuleDraft& draft, const OptionValue& value) {
  Content* content = content_before(draft, value);
  if (content == nullptr || !once(draft, value, content->fast_pattern)) return false;
  if (draft.has_fast_pattern) return draft.fail_combination(value.name, "second fast_pattern in a rule");
  const bool is_placed = content->offset || content->depth || content->distance || content->within;
  if (content->negated && is_placed) {
    return draft.fail_combination(value.name, "fast_pattern for a negated content with a position");
  }
  if (equals_ignoring_case(value.text, "only")) {
    if (content->negated || is_placed || content->ends_with) {
      return draft.fail_combination(value.name, "fast_pattern:only for a content that is negated or has a position");
    }
    content->fast_pattern_only = true;
  } else if (!value.text.empty()) {
    const std::vector<std::string_view> fields = split_fields(value.text);
    if (fields.size() != 2) {
      return draft.fail(value.text, "wrong fast_pattern", in_quotes(value.text), "only, or OFFSET,LENGTH");
    }
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    if (!read_unsigned(draft, fields[0], 0, 0xffff, "offset of fast_pattern", offset) ||
        !read_unsigned(draft, fields[1], 1, 0xffff, "length of fast_pattern", length)) {
      return false;
    }
    if (offset + length > content->bytes.size()) {
      return draft.fail(value.text, "fast_pattern beyond the content's end", in_quotes(value.text),
                        "at most " + std::to_string(content->bytes.size()) + " together", "value");
    }
    if (content->negated) {
      return draft.fail_combination(value.name, "part of a negated content as fast_pattern");
    }
    content->chop_offset = static_cast<std::uint16_t>(offset);
    content->chop_length = static_cast<std::uint16_t>(length);
  }
  content->fast_pattern = true;
  draft.has_fast_pattern = true;
  return true;
}

/// `/expression/flags`, optionally followed by a comma and names for captured groups. The names are ignored, since no
/// supported option uses them.
bool read_pcre(RuleDraft& draft, const OptionValue& value) {
  const std::string_view text = value.text;
  const std::size_t end = closing_slash(text);
  if (!text.starts_with('/') || end == text.npos) {
    return draft.fail(text, "wrong regular expression", in_quotes(text), "/expression/flags");
  }
  Pcre pcre;
  pcre.pattern = text.substr(1, end - 1);
  pcre.negated = value.negated;
  const std::string_view after = text.substr(end + 1);
  const std::string_view flags = trimmed(after.substr(0, after.find(',')));
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string_view here = flags.substr(i, 1);
    switch (flags[i]) {
      case 'i': pcre.caseless = true; break;
      case 'm': pcre.multiline = true; break;
      case 's': pcre.dotall = true; break;
      case 'x': pcre.extended = true; break;
      case 'A': pcre.anchored = true; break;
      case 'E': pcre.dollar_endonly = true; break;
      case 'G': pcre.ungreedy = true; break;
      case 'R': pcre.relative = true; break;
      case 'U': pcre.of = Pcre::Of::request_target; break;
      case 'I': pcre.of = Pcre::Of::raw_request_target; break;
      case 'B':  // rawbytes
      case 'O':  // overrides PCRE limits; here all have the same limits
        break;
      default:
        if (const std::string_view buffer = buffer_of_flag(flags[i]); !buffer.empty()) {
          return draft.fail_unsupported(here, buffer);
        }
        return draft.fail(here, "unknown regular expression flag", in_quotes(here), "i m s x A E G R U I B O");
    }
  }
  // It would be relative to a match in a buffer that is not supported.
  if (pcre.relative && pcre.of != Pcre::Of::buffer) return draft.fail_unsupported(text, "http.uri");
  if (pcre.relative && !not_behind_fast_pattern_only(draft, value.text, draft.last_cursor())) return false;
  draft.add(std::move(pcre));
  return true;
}

}  // namespace penstock::nids
