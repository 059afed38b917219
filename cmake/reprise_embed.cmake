# reprise_embed(MODULE NAME FILE)
#
# Puts FILE (relative to the repository) into the module's library:
#   #include "embedded/NAME.h"
#   reprise::embedded::NAME   // const std::string_view, ready before any constructor runs
set(reprise_embed_script "${CMAKE_CURRENT_LIST_DIR}/embed_file.cmake")

function(reprise_embed module name file)
  set(source "${PROJECT_SOURCE_DIR}/${file}")
  set(header "${PROJECT_BINARY_DIR}/generated/embedded/${name}.h")
  set(code "${PROJECT_BINARY_DIR}/generated/embedded/${name}.cpp")
  file(CONFIGURE OUTPUT "${header}" @ONLY CONTENT "#pragma once
#include <string_view>

namespace reprise::embedded {
extern const std::string_view @name@;
}
")
  add_custom_command(
    OUTPUT "${code}"
    COMMAND "${CMAKE_COMMAND}" -D "NAME=${name}" -D "IN=${source}" -D "OUT=${code}"
            -P "${reprise_embed_script}"
    DEPENDS "${source}" "${reprise_embed_script}"
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(reprise_${module} PRIVATE "${code}")
endfunction()
