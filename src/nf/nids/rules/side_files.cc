// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/side_files.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error_list.h"
#include "base/units.h"
#include "nf/nids/rules/rule_text.h"
#include "nf/nids/rules/threshold_words.h"

namespace penstock::nids {

namespace {

// For each of these files; comments do not count.
constexpr std::size_t kMostLines = 1'000'000;

Error too_many_lines(Place place) {
  const std::string most = format_count(kMostLines);
  return {std::move(place), "too many lines", "more than " + most, "at most " + most};
}

/// The default classes, from Suricata's and Snort's classification.config.
struct DefaultClass {
  const char* name;
  const char* description;
  std::uint8_t priority;
};
constexpr std::array kDefaultClasses{
    DefaultClass{"not-suspicious", "Not Suspicious Traffic", 3},
    DefaultClass{"unknown", "Unknown Traffic", 3},
    DefaultClass{"bad-unknown", "Potentially Bad Traffic", 2},
    DefaultClass{"attempted-recon", "Attempted Information Leak", 2},
    DefaultClass{"successful-recon-limited", "Information Leak", 2},
    DefaultClass{"successful-recon-largescale", "Large Scale Information Leak", 2},
    DefaultClass{"attempted-dos", "Attempted Denial of Service", 2},
    DefaultClass{"successful-dos", "Denial of Service", 2},
    DefaultClass{"attempted-user", "Attempted User Privilege Gain", 1},
    DefaultClass{"unsuccessful-user", "Unsuccessful User Privilege Gain", 1},
    DefaultClass{"successful-user", "Successful User Privilege Gain", 1},
    DefaultClass{"attempted-admin", "Attempted Administrator Privilege Gain", 1},
    DefaultClass{"successful-admin", "Successful Administrator Privilege Gain", 1},
    DefaultClass{"rpc-portmap-decode", "Decode of an RPC Query", 2},
    DefaultClass{"shellcode-detect", "Executable code was detected", 1},
    DefaultClass{"string-detect", "A suspicious string was detected", 3},
    DefaultClass{"suspicious-filename-detect", "A suspicious filename was detected", 2},
    DefaultClass{"suspicious-login", "An attempted login using a suspicious username was detected", 2},
    DefaultClass{"system-call-detect", "A system call was detected", 2},
    DefaultClass{"tcp-connection", "A TCP connection was detected", 4},
    DefaultClass{"trojan-activity", "A Network Trojan was detected", 1},
    DefaultClass{"unusual-client-port-connection", "A client was using an unusual port", 2},
    DefaultClass{"network-scan", "Detection of a Network Scan", 3},
    DefaultClass{"denial-of-service", "Detection of a Denial of Service Attack", 2},
    DefaultClass{"non-standard-protocol", "Detection of a non-standard protocol or event", 2},
    DefaultClass{"protocol-command-decode", "Generic Protocol Command Decode", 3},
    DefaultClass{"web-application-activity", "access to a potentially vulnerable web application", 2},
    DefaultClass{"web-application-attack", "Web Application Attack", 1},
    DefaultClass{"misc-activity", "Misc activity", 3},
    DefaultClass{"misc-attack", "Misc Attack", 2},
    DefaultClass{"icmp-event", "Generic ICMP event", 3},
    DefaultClass{"inappropriate-content", "Inappropriate Content was Detected", 1},
    DefaultClass{"policy-violation", "Potential Corporate Privacy Violation", 1},
    DefaultClass{"default-login-attempt", "Attempt to login by a default username and password", 2},
    DefaultClass{"sdf", "Sensitive Data", 2},
    DefaultClass{"file-format", "Known malicious file or file based exploit", 1},
    DefaultClass{"malware-cnc", "Known malware command and control traffic", 1},
    DefaultClass{"client-side-exploit", "Known client side exploit attempt", 1},
    DefaultClass{"targeted-activity", "Targeted Malicious Activity was Detected", 1},
    DefaultClass{"exploit-kit", "Exploit Kit Activity Detected", 1},
    DefaultClass{"external-ip-check", "Device Retrieving External IP Address Detected", 2},
    DefaultClass{"domain-c2", "Domain Observed Used for C2 Detected", 1},
    DefaultClass{"pup-activity", "Possibly Unwanted Program Detected", 2},
    DefaultClass{"credential-theft", "Successful Credential Theft Detected", 1},
    DefaultClass{"social-engineering", "Possible Social Engineering Attempted", 2},
    DefaultClass{"coin-mining", "Crypto Currency Mining Activity Detected", 2},
    DefaultClass{"command-and-control", "Malware Command and Control Activity Detected", 1},
};

/// The text after `config KEYWORD:`; empty if the line is something else.
std::optional<std::string_view> text_after_config(std::string_view line, std::string_view keyword) {
  if (!line.starts_with("config")) return std::nullopt;
  line = trimmed(line.substr(6));
  if (!line.starts_with(keyword)) return std::nullopt;
  line = trimmed(line.substr(keyword.size()));
  if (!line.starts_with(':')) return std::nullopt;
  return trimmed(line.substr(1));
}

/// Calls `read` for each line that is not a comment; it returns false for a line that is not as `expected`.
template <typename Read>
void each_line(std::string_view text, const std::string& name, ErrorList& errors, const char* expected, Read read) {
  LineReader lines(text);
  std::size_t count = 0;
  for (Line line; lines.next(line);) {
    const std::string_view content = trimmed(line.text);
    if (content.empty() || content.front() == '#') continue;
    if (++count > kMostLines) return errors.add(too_many_lines({name, line.number, 0}));
    if (content.size() > kMostLineBytes) {
      errors.add(Error{{name, line.number, 0}, "line too long", "", "at most " + format_size(kMostLineBytes)});
      continue;
    }
    if (!read(content)) errors.add(Error{{name, line.number, 0}, "wrong line", in_quotes(content), expected});
  }
}

/// Splits comma-separated `key value` pairs; commas inside bracketed lists do not count.
std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size()) {
      if (text[at] == '[') ++depth;
      if (text[at] == ']') --depth;
      if (text[at] != ',' || depth > 0) continue;
    }
    fields.push_back(trimmed(text.substr(start, at - start)));
    start = at + 1;
  }
  return fields;
}

struct Keywords {
  std::string_view gen_id, sig_id, type, track, count, seconds, multiplier, timeout, new_action, ip;
};

bool read_keywords(std::string_view text, Keywords& words, Complaint& why) {
  struct Key {
    std::string_view name;
    std::string_view* value;
  };
  const std::array<Key, 10> keys{{{"gen_id", &words.gen_id},
                                  {"sig_id", &words.sig_id},
                                  {"type", &words.type},
                                  {"track", &words.track},
                                  {"count", &words.count},
                                  {"seconds", &words.seconds},
                                  {"multiplier", &words.multiplier},
                                  {"timeout", &words.timeout},
                                  {"new_action", &words.new_action},
                                  {"ip", &words.ip}}};
  for (const std::string_view field : fields_of(text)) {
    const std::size_t space = field.find_first_of(" \t");
    const std::string_view name = field.substr(0, space);
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == name; });
    if (key == keys.end() || space == field.npos) {
      why = {field, "unknown word", in_quotes(field), "gen_id N, sig_id N, type …, track …, count N, seconds N"};
      return false;
    }
    if (!key->value->empty()) {
      why = {field, "given twice", in_quotes(field), ""};
      return false;
    }
    *key->value = trimmed(field.substr(space));
  }
  return true;
}

bool read_u32(std::string_view text, std::uint32_t least, const char* what, std::uint32_t& out, Complaint& why) {
  const auto value = parse_integer(text);
  if (!value || *value < least || *value > 0xffffffff) {
    why = {text, std::string("wrong ") + what, in_quotes(text), std::to_string(least) + " to 4294967295", "value"};
    return false;
  }
  out = static_cast<std::uint32_t>(*value);
  return true;
}

bool read_suppression(const Keywords& words, VariableResolver& variables, ThresholdLine& line, Complaint& why) {
  Suppression suppression;
  suppression.gid = line.gid;
  suppression.sid = line.sid;
  suppression.always = words.track.empty();
  if (suppression.always != words.ip.empty()) {
    why = {words.track, "suppress with only one of track and ip", "", "both or neither"};
    return false;
  }
  if (!suppression.always) {
    if (words.track == "by_src") {
      suppression.track = TrackBy::source;
    } else if (words.track == "by_dst") {
      suppression.track = TrackBy::destination;
    } else if (words.track == "by_either") {
      suppression.track = TrackBy::both;
    } else {
      why = {words.track, "unknown track", in_quotes(words.track), "by_src, by_dst or by_either"};
      return false;
    }
    const AddressSet* addresses = variables.addresses(words.ip, why);
    if (addresses == nullptr) return false;
    suppression.addresses = *addresses;
  }
  line.suppression = std::move(suppression);
  return true;
}

/// The action that rate_filter substitutes; empty: valid, but without effect.
bool read_new_action(std::string_view text, std::optional<Action>& out, Complaint& why) {
  if (text == "alert") {
    out = Action::alert;
  } else if (text == "drop") {
    out = Action::drop;
  } else if (text == "pass") {
    out = Action::pass;
  } else if (text == "reject") {
    out = Action::reject;
  } else if (text == "log" || text == "sdrop") {
    out = std::nullopt;
  } else {
    why = {text, "unknown action", in_quotes(text), "alert, drop, pass, reject, log or sdrop"};
    return false;
  }
  return true;
}

bool read_threshold_keywords(std::string_view command, const Keywords& words, ThresholdLine& line, Complaint& why) {
  Threshold threshold;
  using Type = Threshold::Type;
  if (command == "rate_filter") {
    threshold.type = Type::rate_filter;
    if (!read_new_action(words.new_action, threshold.new_action, why) ||
        !read_u32(words.timeout, 0, "timeout", threshold.timeout_s, why)) {
      return false;
    }
  } else if (const auto type = threshold_type_of(words.type)) {
    threshold.type = *type;
    if (*type == Type::backoff && !read_u32(words.multiplier, 1, "multiplier", threshold.multiplier, why)) return false;
  } else {
    why = {words.type, "unknown threshold type", in_quotes(words.type), "limit, threshold, both or backoff"};
    return false;
  }
  const auto track = track_of(words.track);
  if (!track || (threshold.type == Type::backoff && *track != TrackBy::flow)) {
    why = {words.track, "unknown track", in_quotes(words.track),
           threshold.type == Type::backoff ? "by_flow" : "by_src, by_dst, by_both, by_rule or by_flow"};
    return false;
  }
  threshold.track = *track;
  if (!read_u32(words.count, 1, "count", threshold.count, why)) return false;
  if (threshold.type != Type::backoff && !read_u32(words.seconds, 1, "seconds", threshold.seconds, why)) return false;
  line.threshold = threshold;
  return true;
}

}  // namespace

const ClassTable& default_classes() {
  static const ClassTable kTable = [] {
    ClassTable classes;
    for (const DefaultClass& one : kDefaultClasses) classes[one.name] = {one.description, one.priority};
    return classes;
  }();
  return kTable;
}

Result<ClassTable> read_classification(std::string_view text, const std::string& name) {
  ClassTable classes;
  ErrorList errors;
  each_line(text, name, errors, "config classification: NAME,DESCRIPTION,PRIORITY", [&](std::string_view line) {
    const auto value = text_after_config(line, "classification");
    if (!value) return false;
    const std::size_t first = value->find(',');
    const std::size_t last = value->rfind(',');
    if (first == value->npos || first == last) return false;
    const auto priority = parse_integer(trimmed(value->substr(last + 1)));
    const std::string_view short_name = trimmed(value->substr(0, first));
    if (!priority || *priority > 255 || short_name.empty()) return false;
    // The first definition of a name is kept.
    classes.try_emplace(lower_case(short_name),
                        RuleClass{std::string(trimmed(value->substr(first + 1, last - first - 1))),
                                  static_cast<std::uint8_t>(*priority)});
    return true;
  });
  if (!errors.empty()) return failure(std::move(errors).take({name, 0, 0}));
  return classes;
}

const ReferenceTable& default_references() {
  static const ReferenceTable kTable{
      {"bugtraq", "http://www.securityfocus.com/bid/"},
      {"bid", "http://www.securityfocus.com/bid/"},
      {"cve", "http://cve.mitre.org/cgi-bin/cvename.cgi?name="},
      {"secunia", "http://www.secunia.com/advisories/"},
      {"arachnids", "http://www.whitehats.com/info/IDS"},
      {"mcafee", "http://vil.nai.com/vil/content/v_"},
      {"nessus", "http://cgi.nessus.org/plugins/dump.php3?id="},
      {"url", "http://"},
      {"et", "http://doc.emergingthreats.net/"},
      {"etpro", "http://doc.emergingthreatspro.com/"},
      {"telus", "http://"},
      {"osvdb", "http://osvdb.org/show/osvdb/"},
      {"threatexpert", "http://www.threatexpert.com/report.aspx?md5="},
      {"md5", "http://www.threatexpert.com/report.aspx?md5="},
      {"exploitdb", "http://www.exploit-db.com/exploits/"},
      {"openpacket", "https://www.openpacket.org/capture/grab/"},
      {"securitytracker", "http://securitytracker.com/id?"},
      {"xforce", "http://xforce.iss.net/xforce/xfdb/"},
      {"msft", "http://technet.microsoft.com/security/bulletin/"},
  };
  return kTable;
}

Result<ReferenceTable> read_references(std::string_view text, const std::string& name) {
  ReferenceTable references;
  ErrorList errors;
  each_line(text, name, errors, "config reference: NAME URL", [&](std::string_view line) {
    const auto value = text_after_config(line, "reference");
    if (!value) return false;
    const std::vector<std::string_view> words = split_spaces(*value);
    if (words.empty() || words.size() > 2) return false;
    references.try_emplace(lower_case(words[0]), words.size() == 2 ? std::string(words[1]) : std::string{});
    return true;
  });
  if (!errors.empty()) return failure(std::move(errors).take({name, 0, 0}));
  return references;
}

bool is_threshold_line(std::string_view text) noexcept {
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  return word == "threshold" || word == "event_filter" || word == "rate_filter" || word == "suppress";
}

std::optional<ThresholdLine> read_threshold_line(std::string_view text, VariableResolver& variables, Complaint& why) {
  const std::size_t space = text.find_first_of(" \t");
  const std::string_view command = text.substr(0, space);
  if (!is_threshold_line(text) || space == text.npos) {
    why = {text, "unknown word", in_quotes(text), "threshold, event_filter, rate_filter or suppress"};
    return std::nullopt;
  }
  Keywords words;
  ThresholdLine line;
  if (!read_keywords(text.substr(space), words, why) || !read_u32(words.gen_id, 0, "gen_id", line.gid, why) ||
      !read_u32(words.sig_id, 0, "sig_id", line.sid, why)) {
    return std::nullopt;
  }
  if (line.gid == 0 && line.sid != 0) {
    why = {words.gen_id, "sig_id without a gid", in_quotes(words.gen_id), "its gid, or sig_id 0"};
    return std::nullopt;
  }
  const bool is_read = command == "suppress" ? read_suppression(words, variables, line, why)
                                             : read_threshold_keywords(command, words, line, why);
  if (!is_read) return std::nullopt;
  return line;
}

Result<std::vector<ThresholdLine>> read_thresholds(std::string_view text, const std::string& name,
                                                   VariableResolver& variables) {
  std::vector<ThresholdLine> read;
  ErrorList errors;
  RuleLines lines(text);
  std::size_t count = 0;
  for (RuleLine line; lines.next(line);) {
    if (line.disabled) continue;
    if (++count > kMostLines) {
      errors.add(too_many_lines(line.place({}, name)));
      break;
    }
    Complaint why;
    if (line.too_long) {
      errors.add(Error{line.place({}, name), "line too long", "", ""});
    } else if (auto one = read_threshold_line(line.text, variables, why)) {
      read.push_back(std::move(*one));
    } else {
      errors.add(Error{line.place(why.at, name), why.message, why.found, why.expected});
    }
  }
  if (!errors.empty()) return failure(std::move(errors).take({name, 0, 0}));
  return read;
}

void apply_thresholds(std::vector<ThresholdLine> lines, RuleSet& set) {
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> rules_of;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> rules_of_gid;  // 0: all
  for (std::size_t i = 0; i < set.rules.size(); ++i) {
    const Rule& rule = set.rules[i];
    rules_of[std::uint64_t{rule.gid} << 32 | rule.sid].push_back(i);
    rules_of_gid[rule.gid].push_back(i);
    rules_of_gid[0].push_back(i);
  }
  for (ThresholdLine& line : lines) {
    if (line.suppression) {
      set.suppressions.push_back(std::move(*line.suppression));
      continue;
    }
    if (line.sid == 0) {
      const auto all = rules_of_gid.find(line.gid);
      if (all == rules_of_gid.end()) continue;
      for (const std::size_t index : all->second) {
        if (!set.rules[index].threshold) set.rules[index].threshold = line.threshold;
      }
      rules_of_gid.erase(all);  // each of these rules has one now
      continue;
    }
    const auto found = rules_of.find(std::uint64_t{line.gid} << 32 | line.sid);
    if (found == rules_of.end()) continue;
    for (const std::size_t index : found->second) {
      Rule& rule = set.rules[index];
      if (line.threshold->type == Threshold::Type::rate_filter && rule.threshold) continue;
      rule.threshold = line.threshold;
    }
  }
}

}  // namespace penstock::nids
