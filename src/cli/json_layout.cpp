#include "cli/json_layout.h"

#include "cli/escape.h"

namespace reprise::cli {
namespace {

constexpr std::size_t kIndent = 2;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The end of the string that begins at `at` with its quote.
std::size_t string_end(std::string_view json, std::size_t at) {
  for (std::size_t i = at + 1; i < json.size(); ++i) {
    if (json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      return i + 1;
    }
  }
  return json.size();
}

class Layout {
 public:
  explicit Layout(std::string_view json) : json_(json) {}

  std::string text() {
    while (at_ < json_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = json_[at_];
    if (c == '"') {
      const std::size_t end = string_end(json_, at_);
      out_ += escape_json(json_.substr(at_, end - at_));
      at_ = end;
      return;
    }
    ++at_;
    if (c == '{' || c == '[') {
      open(c);
    } else if (c == '}' || c == ']') {
      if (depth_ > 0) --depth_;
      new_line();
      out_ += c;
    } else if (c == ',') {
      out_ += c;
      new_line();
    } else if (c == ':') {
      out_ += ": ";
    } else if (!is_space(c)) {
      out_ += c;
    }
  }

  // An empty object or array stays on its line.
  void open(char bracket) {
    out_ += bracket;
    while (at_ < json_.size() && is_space(json_[at_])) ++at_;
    if (at_ < json_.size() && (json_[at_] == '}' || json_[at_] == ']')) {
      out_ += json_[at_++];
      return;
    }
    ++depth_;
    new_line();
  }

  void new_line() {
    out_ += '\n';
    out_.append(depth_ * kIndent, ' ');
  }

  std::string_view json_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::string out_;
};

}  // namespace

std::string indented_json(std::string_view json) { return Layout(json).text(); }

}  // namespace reprise::cli
