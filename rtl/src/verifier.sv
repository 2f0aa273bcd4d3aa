// Verifier: CRC-32C of every page of 4,096 bytes in a stream.
//
// UNITS units check PAGES adjacent pages each, LANE_BITS of every page in a cycle. A stream is one
// or more whole pages; `s_tlast` is high on its last beat and on no other. Pages are numbered from
// 0 in each stream. The next stream may follow at once.
//
//   clk, rst   rising edge; rst is synchronous and may come at any time
//   s_*        AXI4-Stream sink, BUS_BITS wide, first byte in bits 7:0
//   m_*        AXI4-Stream source: CRC-32C in bits 31:0, page number in 63:32, in the order of
//              pages; m_tlast with the stream's last result
//   error      high from a `s_tlast` within a page until reset. That page gives no result, and its
//              stream ends with the page before it; later streams are checked as usual.
//
// A result may wait for more of its stream: until PAGES pages are there or the stream ends, and
// then until the next page is whole. Parameters: PAGES and UNITS at least 1; BUS_BITS and LANE_BITS
// divide the 32,768 bits of a page. PAGE_BITS is smaller in proofs only.
//
// Throughput: BUS_BITS a cycle, or UNITS x PAGES x LANE_BITS less what loading does not hide:
//   PAGES pages a unit in max(PAGES x PAGE_BITS / BUS_BITS,
//                             PAGE_BITS / LANE_BITS + (PAGES - 1) x PAGE_BITS / BUS_BITS) cycles.
// Latency: from a group's last beat to its first result PAGE_BITS / LANE_BITS + 5 cycles.
module verifier #(
    parameter int PAGES     = 4,
    parameter int UNITS     = 2,
    parameter int LANE_BITS = 64,
    parameter int BUS_BITS  = 512,
    parameter int PAGE_BITS = 32768
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [BUS_BITS-1:0] s_tdata,
    input  logic                s_tvalid,
    output logic                s_tready,
    input  logic                s_tlast,
    output logic [63:0]         m_tdata,
    output logic                m_tvalid,
    input  logic                m_tready,
    output logic                m_tlast,
    output logic                error
);

  // A remainder by 0 is no constant: it is asked only of numbers above 0.
  localparam bit BUS_FITS = BUS_BITS > 0 && PAGE_BITS % (BUS_BITS > 0 ? BUS_BITS : 1) == 0;
  localparam bit LANE_FITS = LANE_BITS > 0 && PAGE_BITS % (LANE_BITS > 0 ? LANE_BITS : 1) == 0;

  if (PAGES < 1) begin : gen_no_pages
    $error("verifier: PAGES is the number of pages of a unit and must be at least 1.");
  end
  if (UNITS < 1) begin : gen_no_units
    $error("verifier: UNITS is the number of units and must be at least 1.");
  end
  if (!BUS_FITS) begin : gen_bad_bus
    $error("verifier: BUS_BITS must divide the bits of a page, 32768.");
  end
  if (!LANE_FITS) begin : gen_bad_lane
    $error("verifier: LANE_BITS must divide the bits of a page, 32768.");
  end

  if (PAGES < 1 || UNITS < 1 || !BUS_FITS || !LANE_FITS) begin : gen_stop
`ifdef VERILATOR
    // With -Wno-fatal, Verilator goes on after $error, but not after a width that is no constant.
    logic [error:0] parameters_are_wrong;
`endif
  end else begin : gen_verifier
    // A beat must go to different banks: its words are at least a PAGES-th of it.
    localparam int SHARE = 1 << $clog2((BUS_BITS + PAGES - 1) / PAGES);
    localparam int WORD_BITS = LANE_BITS > SHARE ? LANE_BITS : SHARE;
    localparam int BEAT_BITS = WORD_BITS > BUS_BITS ? WORD_BITS : BUS_BITS;
    localparam int WORDS = BEAT_BITS / WORD_BITS;
    localparam int BEATS = PAGE_BITS / BEAT_BITS;
    localparam int BEAT_W = BEATS > 1 ? $clog2(BEATS) : 1;
    localparam int INDEX_W = WORDS > 1 ? $clog2(WORDS) : 1;
    localparam int PAGE_W = PAGES > 1 ? $clog2(PAGES) : 1;
    localparam int UNIT_W = UNITS > 1 ? $clog2(UNITS) : 1;

    logic beat_valid, beat_ready, page_end, stream_end, broken;
    logic [BEAT_BITS-1:0] beat_data;

    verifier_gather #(
        .BUS_BITS (BUS_BITS),
        .OUT_BITS (BEAT_BITS),
        .PAGE_BITS(PAGE_BITS)
    ) gather (
        .clk,
        .rst,
        .s_tdata,
        .s_tvalid,
        .s_tready,
        .s_tlast,
        .out_valid     (beat_valid),
        .out_ready     (beat_ready),
        .out_data      (beat_data),
        .out_page_end  (page_end),
        .out_stream_end(stream_end),
        .out_broken    (broken),
        .error
    );

    logic valid, ready, whole, first, over, close;
    logic [UNIT_W-1:0] unit;
    logic [BEAT_W-1:0] beat;
    logic [PAGES-1:0] bank_write;
    logic [PAGES*WORD_BITS-1:0] bank_word;
    logic [PAGES*INDEX_W-1:0] bank_index;
    logic [PAGE_W-1:0] last_page;

    verifier_spread #(
        .PAGES    (PAGES),
        .UNITS    (UNITS),
        .WORD_BITS(WORD_BITS),
        .WORDS    (WORDS),
        .PAGE_BITS(PAGE_BITS)
    ) spread (
        .clk,
        .rst,
        .in_valid     (beat_valid),
        .in_ready     (beat_ready),
        .in_data      (beat_data),
        .in_page_end  (page_end),
        .in_stream_end(stream_end),
        .in_broken    (broken),
        .valid,
        .ready,
        .unit,
        .beat,
        .bank_write,
        .bank_word,
        .bank_index,
        .whole,
        .first,
        .over,
        .close,
        .last_page
    );

    logic [UNITS-1:0] may_write, unit_valid, unit_next;
    logic [UNITS*32-1:0] unit_result;
    logic unit_last;

    assign ready = may_write[unit];

    for (genvar u = 0; u < UNITS; u++) begin : gen_unit
      verifier_unit #(
          .PAGES    (PAGES),
          .LANE_BITS(LANE_BITS),
          .WORD_BITS(WORD_BITS),
          .WORDS    (WORDS),
          .PAGE_BITS(PAGE_BITS)
      ) pages (
          .clk,
          .rst,
          .write       (valid && ready && unit == UNIT_W'(u)),
          .beat,
          .bank_write,
          .bank_word,
          .bank_index,
          .close,
          .may_write   (may_write[u]),
          .result_valid(unit_valid[u]),
          .result      (unit_result[u*32+:32]),
          .result_next (unit_next[u]),
          .result_last (unit_last)
      );
    end

    logic group_valid, group_last, group_pop;
    logic [PAGE_W-1:0] group_last_page;

    verifier_groups #(
        .PAGES(PAGES),
        .UNITS(UNITS)
    ) groups (
        .clk,
        .rst,
        .event_valid  (valid && ready),
        .whole,
        .first,
        .over,
        .close,
        .last_page,
        .valid        (group_valid),
        .last_page_out(group_last_page),
        .last_group   (group_last),
        .pop          (group_pop)
    );

    verifier_collect #(
        .PAGES(PAGES),
        .UNITS(UNITS)
    ) collect (
        .clk,
        .rst,
        .group_valid,
        .group_last_page,
        .group_last,
        .group_pop,
        .unit_valid,
        .unit_result,
        .unit_next,
        .unit_last,
        .m_tdata,
        .m_tvalid,
        .m_tready,
        .m_tlast
    );
  end

endmodule
