# Every external library, found once. Put these names in LIBS of reprise_module():
#
#   name in LIBS                    Debian 12 package        what for
#   RocksDB::rocksdb                librocksdb-dev           storage
#   simdjson::simdjson              libsimdjson-dev          reading JSON
#   absl::btree                     libabsl-dev              ordered maps
#   absl::flat_hash_map             libabsl-dev              hash maps (also absl::flat_hash_set)
#   Boost::headers                  libboost1.81-dev         Asio, Beast, system::result; brings Threads
#   CLI11::CLI11                    libcli11-dev             command line
#   tomlplusplus::tomlplusplus      libtomlplusplus-dev      configuration files
#   fmt::fmt                        libfmt-dev               formatting
#   spdlog::spdlog                  libspdlog-dev            logging (on the fmt above)
#   CURL::libcurl                   libcurl4-openssl-dev     HTTP client
#   OpenSSL::SSL, OpenSSL::Crypto   libssl-dev               TLS, hashes
#   Lua::lua                        liblua5.4-dev            hooks; the build whose errors are C++ exceptions
#   Seccomp::seccomp                libseccomp-dev           locking the hooks' processes in
#   Threads::Threads                libc6-dev                std::thread
#   GTest::gtest, GTest::gmock      libgtest-dev, libgmock-dev   linked to every test already
#
# Imported targets bring their include directories as SYSTEM, so warnings stay ours.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(RocksDB REQUIRED)
find_package(simdjson REQUIRED)
find_package(absl REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(lua REQUIRED IMPORTED_TARGET lua5.4-c++)
add_library(Lua::lua ALIAS PkgConfig::lua)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
add_library(Seccomp::seccomp ALIAS PkgConfig::seccomp)
if(REPRISE_TESTS)
  find_package(GTest REQUIRED)
endif()

target_link_libraries(Boost::headers INTERFACE Threads::Threads)

# Jobs are allocated by one thread and freed by another, a million times a second: glibc's arenas are
# not made for that (docs/performance.md). Sanitizers bring an allocator of their own.
find_library(REPRISE_JEMALLOC jemalloc)
function(reprise_use_jemalloc target)
  if(REPRISE_JEMALLOC AND NOT REPRISE_SANITIZE)
    target_link_libraries(${target} PRIVATE ${REPRISE_JEMALLOC})
  endif()
endfunction()
