// For targets that are linked with libFuzzer: TARGET --write-seeds DIRECTORY.
#include <cstdlib>
#include <cstring>

#include "fuzz/seed_files.h"

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count == 3 && std::strcmp((*arguments)[1], "--write-seeds") == 0) {
    std::exit(reprise::fuzz::write_seeds((*arguments)[2]));
  }
  return 0;
}
