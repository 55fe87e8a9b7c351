/* SHA-256 against the examples of FIPS 180-4 and lengths around a block. */
#include "tools/sha256.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect(const char *data, size_t n, const char *want)
{
    char got[65];
    sha256_hex(data, n, got);
    cr_expect_str_eq(got, want);
}

Test(sha256, examples)
{
    expect("", 0,
           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
           "7852b855");
    expect("abc", 3,
           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff"
           "61f20015ad");
    const char *two =
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect(two, strlen(two),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff21"
           "67f6ecedd419db06c1");
}

Test(sha256, lengths_around_a_block)
{
    char text[128];
    memset(text, 'a', sizeof text);
    expect(text, 55,
           "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e"
           "910f734318");
    expect(text, 56,
           "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970"
           "686ec6738a");
    expect(text, 64,
           "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337"
           "df154668eb");
}
