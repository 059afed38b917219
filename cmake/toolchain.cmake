# Compiler and linker settings that hold for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # clang-tidy reads it

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# assert() stays on in every build: a broken invariant must stop the process before it is stored.
add_compile_options(-UNDEBUG)

# -Wconversion is left out: it drowns our own code in findings about third-party templates.
# Designated initialisers leave out what has a default; that is their point.
add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wno-missing-field-initializers)
# GCC 12 takes the inactive side of a variant for an uninitialised value; the sanitizers and
# clang-tidy look for real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized)
  # Nor is a .cpp file that another one includes (cmake/unity.cmake) a header.
  if(CMAKE_UNITY_BUILD)
    add_compile_options(-Wno-subobject-linkage)
  endif()
endif()

if(REPRISE_SANITIZE)
  # A report must fail the test that caused it, so undefined behaviour stops the process too.
  add_compile_options(-fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${REPRISE_SANITIZE})
  if(REPRISE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Asio's fences: known to TSan as unsupported, no finding of ours
  endif()
  if(REPRISE_SANITIZE MATCHES "undefined")
    # The vptr check probes memory through a pipe; in a process that has no descriptor left it takes
    # every object for a wrong one. Objects used after their end are AddressSanitizer's to find.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

# libFuzzer has to know which code an input reaches.
if(REPRISE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(REPRISE_LIBFUZZER ON)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# With a base directory a second checkout finds what the first one compiled.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      # For precompiled headers; nothing here asks for the time of its compilation.
      CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
