#include "palmette/aggregate/frame.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "palmette/aggregate/crc32c.hpp"
#include "palmette/aggregate/messages.hpp"
#include "palmette/aggregate/socket.hpp"
#include "palmette/aggregate/token.hpp"
#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"

namespace palmette::aggregate {
namespace {

Header sample() {
    Header header;
    header.type = FrameType::data;
    header.flags = gives | wants;
    header.group = 0x1122334455667788;
    header.epoch = 3;
    header.collective = Collective::reduce;
    header.op = kernels::Operator::maxloc;
    header.element = kernels::Element::int64_int64;
    header.root = 513;
    header.sequence = 77;
    header.chunk = 1ULL << 40;
    header.offset = 1000;
    header.count = 2000;
    header.bytes = 1600;
    header.payload_crc = 0xdeadbeef;
    return header;
}

TEST(Frame, AHeaderComesBack) {
    HeaderBytes bytes{};
    write_header(sample(), bytes.data());
    Header read;
    ASSERT_EQ(parse_header(bytes.data(), read), Reason::none);
    EXPECT_TRUE(same_chunk(read, sample()));
    EXPECT_EQ(read.type, FrameType::data);
    EXPECT_EQ(read.flags, sample().flags);
    EXPECT_EQ(read.group, sample().group);
    EXPECT_EQ(read.epoch, 3U);
    EXPECT_EQ(read.bytes, 1600U);
    EXPECT_EQ(read.payload_crc, 0xdeadbeefU);
    EXPECT_TRUE(fits_operation(read));
}

TEST(Frame, TheLayoutIsWrittenDown) {
    HeaderBytes bytes{};
    write_header(sample(), bytes.data());
    EXPECT_EQ(std::string(bytes.data(), 4), "PMGA");
    EXPECT_EQ(bytes[4], protocol_version);
    EXPECT_EQ(bytes[8], '\x88') << "little-endian";
}

TEST(Frame, AnyChangedBitIsNoticed) {
    HeaderBytes bytes{};
    write_header(sample(), bytes.data());
    Header read;
    for (std::size_t bit = 0; bit < 8 * header_bytes; ++bit) {
        HeaderBytes damaged = bytes;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
        EXPECT_EQ(parse_header(damaged.data(), read), bit / 8 == 4 ? Reason::version : Reason::damaged) << bit;
    }
}

/// Seals a header of any bytes with the right checksum.
void seal(HeaderBytes& bytes) {
    Writer out(bytes.data() + header_bytes - 4, 4);
    out.put(crc32c(bytes.data(), header_bytes - 4));
}

TEST(Frame, WhatTheParserLetsThroughIsInRange) {
    std::mt19937 random(3);
    HeaderBytes bytes{};
    Header read;
    int through = 0;
    for (int trial = 0; trial < 200000; ++trial) {
        write_header(sample(), bytes.data());
        const int changes = 1 + static_cast<int>(random() % 4);
        for (int change = 0; change < changes; ++change)
            bytes[4 + random() % (header_bytes - 8)] = static_cast<char>(random());
        bytes[4] = protocol_version;
        seal(bytes);
        if (parse_header(bytes.data(), read) != Reason::none) continue;
        ++through;
        ASSERT_LE(static_cast<unsigned>(read.type), static_cast<unsigned>(FrameType::leave));
        ASSERT_LT(static_cast<std::size_t>(read.op), kernels::operator_count);
        ASSERT_LT(static_cast<std::size_t>(read.element), kernels::element_count);
        const bool chunk = read.type == FrameType::data || read.type == FrameType::result;
        ASSERT_LE(read.bytes, chunk ? most_chunk_bytes : most_control_bytes);
        const std::size_t extent = kernels::bytes_of(read.element).extent;
        if (fits_operation(read)) {
            ASSERT_LE(read.offset + read.bytes / extent, read.count);
        }
    }
    EXPECT_GT(through, 1000);
}

TEST(Frame, LengthsAtTheEndsDontWrapAround) {
    Header header = sample();
    header.offset = header.count = UINT64_MAX;
    header.bytes = 16;
    EXPECT_FALSE(fits_operation(header));
    header.bytes = 0;
    EXPECT_TRUE(fits_operation(header));
    header.offset = UINT64_MAX;
    header.count = 5;
    EXPECT_FALSE(fits_operation(header));
}

template <class Message>
std::string written(const Message& message, std::string_view appended = {}) {
    std::array<char, most_control_bytes> bytes{};
    Writer out(bytes.data(), bytes.size());
    message.write(out);
    out.put_bytes(appended);
    EXPECT_TRUE(out.good());
    return std::string(out.view());
}

template <class Message>
void check_lengths(const std::string& whole) {
    Message read;
    EXPECT_TRUE(read.read(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(Message().read(whole.substr(0, size))) << size;
    EXPECT_FALSE(Message().read(whole + "x"));
    std::mt19937 random(4);
    for (int trial = 0; trial < 20000; ++trial) {
        std::string damaged = whole;
        for (int change = 0; change < 3; ++change) damaged[random() % damaged.size()] = static_cast<char>(random());
        damaged.resize(random() % (damaged.size() + 1));
        read.read(damaged);  // whatever it says, under the sanitizers
    }
}

TEST(Frame, MessagesAreReadWholeOrNotAtAll) {
    Create create;
    create.levels.count = 3;
    create.levels.at = {Level{4, 1}, Level{2, 0}, Level{9, 8}};
    create.token = "palmette-token-1,1,2,3";
    const Digest proof = sha256("x");
    check_lengths<Create>(written(create, view(proof)));
    check_lengths<Join>(written(Join{}));
    check_lengths<Hello>(written(Hello{}));
    check_lengths<Abort>(written(Abort{Reason::quota, "too much"}));
    Create read;
    const std::string text = written(create, view(proof));
    ASSERT_TRUE(read.read(text));
    EXPECT_EQ(read.token, create.token);
    EXPECT_TRUE(read.levels == create.levels);
    EXPECT_EQ(read.proof, proof);
    EXPECT_EQ(read.before_proof.size() + proof.size(), text.size());
}

TEST(Frame, MessagesWithImpossibleFieldsAreRefused) {
    Create create;
    Create read;
    const std::string proof(32, 'p');
    EXPECT_FALSE(read.read(written(create, proof))) << "no level";
    create.levels.count = 1;
    EXPECT_FALSE(read.read(written(create, proof))) << "member 0 of none";
    create.levels.at[0] = {3, 3};
    EXPECT_FALSE(read.read(written(create, proof)));
    Join join;
    join.shape.mode = static_cast<Mode>(7);
    EXPECT_FALSE(Join().read(written(join)));
    EXPECT_FALSE(Abort().read(written(Abort{Reason::none, ""})));
    EXPECT_FALSE(Abort().read(written(Abort{static_cast<Reason>(200), ""})));
}

TEST(Frame, TokensAreReadAsTheyAreWritten) {
    Grant grant;
    EXPECT_TRUE(grant.read(Grant{7, 123456789012, 5}.text()));
    EXPECT_EQ(grant.uid, 7U);
    EXPECT_EQ(grant.expires_s, 123456789012);
    EXPECT_EQ(grant.groups, 5U);
    for (const char* text : {"", "palmette-token-1", "palmette-token-1,", "palmette-token-1,1", "palmette-token-1,1,2",
                             "palmette-token-1,1,2,", "palmette-token-1,1,2,3,", "palmette-token-1,1,2,3x",
                             "palmette-token-1,-1,2,3", "palmette-token-2,1,2,3", "palmette-token-1,99999999999,2,3"})
        EXPECT_FALSE(grant.read(text)) << text;
}

// The same as in tests/python/aggregator.
TEST(Frame, TokensAreThoseThatTheCommandMakes) {
    const std::string text = Grant{1000, 2000000000, 4}.text();
    EXPECT_EQ(text, "palmette-token-1,1000,2000000000,4");
    EXPECT_EQ(hex(view(token_key("0123456789abcdef0123456789abcdef", text))),
              "c005a7d4f51521827c66373d527cfdee57788731c11f4080ba1d4b5bdb4e8fa8");
}

TEST(Frame, TokensInFiles) {
    const std::string path = ::testing::TempDir() + "palmette.token";
    const std::string line = Grant{1000, 2000000000, 4}.text() + ":" + hex(view(sha256("key")));
    const auto write = [&](const std::string& text, mode_t mode) {
        ASSERT_TRUE(base::replace_file(path, text));
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
    };
    write(line + "\n", 0600);
    EXPECT_EQ(read_token(path).key, sha256("key"));
    EXPECT_EQ(read_token(path).text, "palmette-token-1,1000,2000000000,4");
    EXPECT_GT(read_site_key(path).size(), 32U);
    write(line, 0644);
    EXPECT_THROW(read_token(path), base::Error) << "others may read it";
    write(line.substr(1), 0600);
    EXPECT_THROW(read_token(path), base::Error);
    write(line.substr(0, line.size() - 1), 0600);
    EXPECT_THROW(read_token(path), base::Error);
    write("short", 0600);
    EXPECT_THROW(read_site_key(path), base::Error);
    std::remove(path.c_str());
    EXPECT_THROW(read_token(path), base::Error);
}

TEST(Frame, AddressesAsUsersWriteThem) {
    EXPECT_EQ(Address::read("node7:7117").host, "node7");
    EXPECT_EQ(Address::read("[fe80::1]:80").host, "fe80::1");
    EXPECT_EQ(Address::read("[fe80::1]:80").text(), "[fe80::1]:80");
    EXPECT_EQ(Address::read(":9").host, "");
    for (const char* text : {"", "node7", "node7:", "node7:x", "node7:65536", "node7:1:"})
        EXPECT_THROW(Address::read(text), base::Error) << text;
}

}  // namespace
}  // namespace palmette::aggregate
