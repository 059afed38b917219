// HelpFormatter: how --help looks. Only .cpp files include this: it brings CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace reprise::cli {

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  // Defaults are part of the descriptions where they matter; here only type and environment.
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace reprise::cli
