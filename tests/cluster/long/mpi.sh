# Parts of the long lane: Open MPI.

part_mpi_whole() {
    if [ ! -e /usr/include/fftw3-mpi.h ]; then
        skip "one transform over all ranks" "no FFTW for MPI (apt-get install libfftw3-mpi-dev)"
        return
    fi
    mpicc -O2 -Wall -o whole "$root/tests/cluster/whole.c" -lfftw3_mpi -lfftw3 -lm
    expect 0 whole.log inside "$recipes/mpi/run" ./whole 96 "$work/whole.out"
    # Each of the three machines had planes of its own.
    [ "$(grep -c ' planes from ' whole.log)" = 3 ]
    "$python" "$root/tests/cluster/whole.py" 96 whole.out
    done_with "MPI: one transform over all ranks is NumPy's"
}

part_mpi_restart() {
    mpicc -O2 -Wall -o rounds "$root/tests/cluster/rounds.c"
    inside "$recipes/mpi/run" ./rounds "$work/stop" "$work/rounds-begun" >rounds.log 2>&1 &
    local job=$!
    until_seen "$job" [ -e rounds-begun ]
    kill_drive d1 drive
    inside "$CSD" --quiet array up >again.log 2>&1
    # More rounds are done since then.
    rm rounds-begun
    until_seen "$job" [ -e rounds-begun ]
    touch stop
    wait "$job"
    grep -q 'rounds of 3 ranks, every sum right' rounds.log
    done_with "MPI: the drive of a rank is killed and started again, and the job goes on"
}

part_mpi_lost() {
    lose_rank
    [ "$took" -le 60 ] || { echo "the job ended only after $took s" >&2; exit 1; }
    done_with "MPI: a drive that is gone ends the job after $took s, and is named"
}
