// Proof harness: a verifier of tiny pages under all inputs, resets included.
//
// Any page may be watched: its result must leave in its turn with the checksum, number and m_tlast
// that a serial reference gives it. So no result is lost, made up, changed or out of order.
// Waiting is bounded too: with a willing sink, input is not refused, nor a due result kept, for
// longer than a group takes.
module verifier_formal #(
    parameter int PAGES     = 3,
    parameter int UNITS     = 2,
    parameter int LANE_BITS = 8,
    parameter int BUS_BITS  = 16,
    parameter int PAGE_BITS = 32,
    parameter bit DATA      = 1,  // checksums are watched too
    parameter bit RESETS    = 1   // reset may come at any time
) (
    input logic                clk,
    input logic                rst,
    input logic [BUS_BITS-1:0] s_tdata,
    input logic                s_tvalid,
    input logic                s_tlast,
    input logic                m_tready
);

  localparam int BEATS = PAGE_BITS / BUS_BITS;
  localparam int PATIENCE = 2 * (PAGE_BITS / LANE_BITS + PAGES * UNITS) + 8;

  logic s_tready, m_tvalid, m_tlast, error;
  logic [63:0] m_tdata;

  verifier #(
      .PAGES    (PAGES),
      .UNITS    (UNITS),
      .LANE_BITS(LANE_BITS),
      .BUS_BITS (BUS_BITS),
      .PAGE_BITS(PAGE_BITS)
  ) dut (
      .clk,
      .rst,
      .s_tdata,
      .s_tvalid,
      .s_tready,
      .s_tlast,
      .m_tdata,
      .m_tvalid,
      .m_tready,
      .m_tlast,
      .error
  );

  logic started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;
  always_comb if (!started) assume (rst);
  always_comb if (started && !RESETS) assume (!rst);

  // Reference: what was taken since the last reset.
  (* anyconst *) logic [3:0] watched;
  logic [3:0] whole, left;  // pages taken, results that left
  logic [7:0] beat;
  logic [31:0] state, watched_state, number, watched_number;
  logic watched_last, broken, open;  // open: the stream has begun and not ended
  logic take, leave, page_end;
  logic [31:0] after;

  assign take = s_tvalid && s_tready;
  assign leave = m_tvalid && m_tready;
  assign page_end = beat == 8'(BEATS - 1);
  // The same steps, one after another; BUS_BITS is at least LANE_BITS.
  logic [31:0] link[BUS_BITS/LANE_BITS+1];
  assign link[0] = beat == '0 ? '1 : state;
  assign after = link[BUS_BITS/LANE_BITS];
  for (genvar k = 0; k < BUS_BITS / LANE_BITS; k++) begin : gen_step
    crc32c_step #(
        .BITS(LANE_BITS)
    ) step (
        .state(link[k]),
        .data (s_tdata[k*LANE_BITS+:LANE_BITS]),
        .next (link[k+1])
    );
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      whole <= '0;
      left <= '0;
      beat <= '0;
      number <= '0;
      broken <= 1'b0;
      open <= 1'b0;
    end else begin
      if (leave) left <= left + 1'b1;
      if (take) begin
        state <= after;
        beat <= page_end || s_tlast ? '0 : beat + 1'b1;
        open <= !s_tlast;
        broken <= broken || (s_tlast && !page_end);
        if (page_end) whole <= whole + 1'b1;
        number <= s_tlast ? '0 : number + 32'(page_end);
        if (page_end && whole == watched) begin
          watched_state <= after;
          watched_number <= number;
          watched_last <= s_tlast;
        end
        // A page that breaks off makes the page before it the last.
        if (s_tlast && !page_end && number != '0 && whole == watched + 1'b1) watched_last <= 1'b1;
      end
      assume (whole != '1);
    end
  end

  logic [7:0] refused, kept;
  always_ff @(posedge clk) begin
    if (rst || take || !s_tvalid || !m_tready) refused <= '0;
    else refused <= refused + 1'b1;
    if (rst || leave || open || left == whole || !m_tready) kept <= '0;
    else kept <= kept + 1'b1;
  end

  logic was_held, was_last;
  logic [63:0] was_data;
  always_ff @(posedge clk) begin
    was_held <= !rst && m_tvalid && !m_tready;
    was_data <= m_tdata;
    was_last <= m_tlast;
  end

  always_ff @(posedge clk) begin
    if (started && !rst) begin
      assert (error == broken);
      assert (left <= whole);
      if (m_tvalid) assert (left < whole);
      if (m_tvalid && left == watched) begin
        assert (m_tdata[63:32] == watched_number);
        if (DATA) assert (m_tdata[31:0] == ~watched_state);
        assert (m_tlast == watched_last);
      end
      if (was_held) assert (m_tvalid && m_tdata == was_data && m_tlast == was_last);
      assert (refused < PATIENCE);
      assert (kept < PATIENCE);
    end
  end

endmodule
