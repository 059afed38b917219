#include "base/result.h"

#include <stdexcept>

namespace reprise {

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::logic_error("unchecked error at " + where.to_string() + ": " + error.detail);
}

}  // namespace reprise
