# reprise_module(NAME SRCS ... [TESTS ...] [DEPS ...] [LIBS ...] [TEST_DEPS ...] [TEST_LABEL label])
#
# One folder of src/ as one static library, so that DEPS draws the architecture.
#   SRCS       .cpp files; headers need not be listed
#   TESTS      GoogleTest .cpp files, all in one executable NAME_test, known to ctest as NAME.Suite.Case
#   DEPS       other modules, by name; what they depend on comes with them
#   LIBS       external libraries, by the names in dependencies.cmake
#   TEST_DEPS  modules that only the tests need
#   TEST_LABEL the ctest label; "unit" unless told
#
# The target is reprise::NAME. Includes start at src/, in tests also at tests/ ("support/...").
function(reprise_module name)
  cmake_parse_arguments(arg "" "TEST_LABEL" "SRCS;TESTS;DEPS;LIBS;TEST_DEPS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "reprise_module(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  # With the prefix a missing module is an error here, not a missing "-lbase" at link time.
  list(TRANSFORM arg_DEPS PREPEND "reprise::")
  list(TRANSFORM arg_TEST_DEPS PREPEND "reprise::")

  if(arg_SRCS)
    reprise_compiled_as_one(sources ${name} ${name} ${arg_SRCS})
    add_library(reprise_${name} STATIC ${sources})
    set_target_properties(reprise_${name} PROPERTIES UNITY_BUILD OFF)
    set(scope PUBLIC)
  else()
    add_library(reprise_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(reprise::${name} ALIAS reprise_${name})
  target_include_directories(reprise_${name} ${scope}
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated")
  target_link_libraries(reprise_${name} ${scope} ${arg_DEPS} ${arg_LIBS})

  if(REPRISE_TESTS AND arg_TESTS)
    if(NOT arg_TEST_LABEL)
      set(arg_TEST_LABEL unit)
    endif()
    reprise_compiled_as_one(sources ${name} ${name}_test ${arg_TESTS})
    add_executable(${name}_test ${sources})
    set_target_properties(${name}_test PROPERTIES UNITY_BUILD OFF)
    target_include_directories(${name}_test PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${name}_test PRIVATE
      reprise::${name} ${arg_TEST_DEPS} GTest::gmock GTest::gtest_main)
    # What is tested keeps its own optimisation; that of the tests would be a third of the build.
    target_compile_options(${name}_test PRIVATE -O1)
    # A second of each test file's compilation, read once.
    target_precompile_headers(${name}_test PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    # PRE_TEST: a test binary that crashes at start breaks the test run, not everyone's build.
    gtest_discover_tests(${name}_test
      TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${arg_TEST_LABEL} TIMEOUT 300
                 ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  endif()
endfunction()
