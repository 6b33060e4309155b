#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "palmette/aggregate/crc32c.hpp"
#include "palmette/aggregate/sha256.hpp"

namespace palmette::aggregate {
namespace {

std::string hashed(std::string_view bytes) { return hex(view(sha256(bytes))); }

TEST(Digests, Sha256OfTheStandardsExamples) {
    EXPECT_EQ(hashed(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hashed("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hashed("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hashed(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digests, Sha256IsTheSameInPieces) {
    const std::string text(300, 'x');
    for (std::size_t size = 0; size <= text.size(); ++size) {
        Sha256 pieces;
        for (std::size_t at = 0; at < size; at += 7)
            pieces.add(std::string_view(text).substr(at, std::min<std::size_t>(7, size - at)));
        EXPECT_EQ(pieces.finish(), sha256(std::string_view(text).substr(0, size))) << size;
    }
}

// RFC 4231.
TEST(Digests, HmacOfTheRfcsExamples) {
    const auto mac = [](const std::string& key, std::string_view message) { return hex(view(hmac(key, message))); };
    EXPECT_EQ(mac(std::string(20, '\x0b'), "Hi There"),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(mac(std::string(20, '\xaa'), std::string(50, '\xdd')),
              "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Digests, HexadecimalDigitsAndBack) {
    const Digest digest = sha256("x");
    Digest read{};
    EXPECT_TRUE(from_hex(hex(view(digest)), read));
    EXPECT_TRUE(same_digest(read, digest));
    EXPECT_FALSE(same_digest(read, sha256("y")));
    EXPECT_FALSE(from_hex("12", read));
    EXPECT_FALSE(from_hex(std::string(64, 'g'), read));
}

// RFC 3720, appendix B.4.
TEST(Digests, Crc32cOfTheRfcsExamples) {
    std::string ascending(32, 0);
    std::iota(ascending.begin(), ascending.end(), '\0');
    for (const auto crc : {crc32c, crc32c_by_tables}) {
        EXPECT_EQ(crc(std::string(32, '\0').data(), 32, 0), 0x8a9136aaU);
        EXPECT_EQ(crc(std::string(32, '\xff').data(), 32, 0), 0x62a8ab43U);
        EXPECT_EQ(crc(ascending.data(), 32, 0), 0x46dd794eU);
    }
}

TEST(Digests, Crc32cIsTheSameByTablesAndInPieces) {
    std::mt19937 random(1);
    std::string bytes(200, 0);
    for (char& one : bytes) one = static_cast<char>(random());
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        const std::uint32_t whole = crc32c(bytes.data(), size);
        EXPECT_EQ(whole, crc32c_by_tables(bytes.data(), size));
        EXPECT_EQ(whole, crc32c(bytes.data() + size / 3, size - size / 3, crc32c(bytes.data(), size / 3)));
    }
}

}  // namespace
}  // namespace palmette::aggregate
