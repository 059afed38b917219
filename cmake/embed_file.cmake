# Writes OUT, a C++ file that holds the bytes of IN as reprise::embedded::NAME. Bytes as characters,
# not a string literal: no limit on length, no delimiter that a file could contain.
file(READ "${IN}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE "${OUT}" "#include \"embedded/${NAME}.h\"

namespace reprise::embedded {
static constexpr char bytes[] = {${bytes}'\\0'};
constinit const std::string_view ${NAME}{bytes, sizeof(bytes) - 1};
}
")
