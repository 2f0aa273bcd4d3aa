// Collects the checksums of all units, in the order of groups and pages, and numbers them.
//
// Groups end in the order in which they closed, because every unit takes as long for each; so
// taking the units in turn costs nothing, and results leave in the order of pages.
//
//   group_*    oldest group of verifier_groups; group_pop takes it
//   unit_*     result_valid, result, result_next, result_last of all units
//   m_*        AXI4-Stream source: checksum in 31:0, page number in 63:32; m_tlast with the last
//              result of a stream
//
// Latency: one cycle. Throughput: one result a cycle.
module verifier_collect #(
    parameter int PAGES  = 4,
    parameter int UNITS  = 2,
    parameter int PAGE_W = PAGES > 1 ? $clog2(PAGES) : 1,
    parameter int UNIT_W = UNITS > 1 ? $clog2(UNITS) : 1
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                group_valid,
    input  logic [PAGE_W-1:0]   group_last_page,
    input  logic                group_last,
    output logic                group_pop,
    input  logic [UNITS-1:0]    unit_valid,
    input  logic [UNITS*32-1:0] unit_result,
    output logic [UNITS-1:0]    unit_next,
    output logic                unit_last,
    output logic [63:0]         m_tdata,
    output logic                m_tvalid,
    input  logic                m_tready,
    output logic                m_tlast
);

  logic [UNIT_W-1:0] unit;   // whose group is the oldest
  logic [PAGE_W-1:0] page;   // next of that group
  logic [31:0]       number; // next of the stream
  logic take;

  assign take = group_valid && unit_valid[unit] && (!m_tvalid || m_tready);
  assign unit_last = page == group_last_page;
  assign group_pop = take && unit_last;
  for (genvar u = 0; u < UNITS; u++) begin : gen_unit
    assign unit_next[u] = take && unit == UNIT_W'(u);
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      m_tvalid <= 1'b0;
      unit <= '0;
      page <= '0;
      number <= '0;
    end else if (take) begin
      m_tvalid <= 1'b1;
      page <= unit_last ? '0 : page + 1'b1;
      number <= unit_last && group_last ? '0 : number + 1'b1;
      if (unit_last) unit <= unit == UNIT_W'(UNITS - 1) ? '0 : unit + 1'b1;
    end else if (m_tready) begin
      m_tvalid <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (take) begin
      m_tdata <= {number, unit_result[unit*32+:32]};
      m_tlast <= unit_last && group_last;
    end
  end

endmodule
