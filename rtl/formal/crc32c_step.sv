// Stand-in for crc32c_step in proofs of the verifier: the "checksum" is the page's last 32 bits.
//
// The verifier does not depend on what a step computes (crc32c_formal proves the real one), and
// with this one a proof sees every bit's way from the bus to the result: pages of up to 32 bits
// come out whole.
module crc32c_step #(
    parameter int BITS = 8
) (
    input  logic [31:0]     state,
    input  logic [BITS-1:0] data,
    output logic [31:0]     next
);

  assign next = {data, state[31:BITS]};

endmodule
