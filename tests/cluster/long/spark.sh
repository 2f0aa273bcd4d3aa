# Parts of the long lane: Spark on HDFS, with executors in the drives.

has_spark() {
    "$python" -c 'import pandas, pyspark' 2>/dev/null && return
    skip Spark "no PySpark or no pandas (pip install 'pyspark>=3.5,<3.6' pandas)"
    return 1
}
spark() { inside env SPARK_PYTHON="$python" "$recipes/spark/$1" "${@:2}"; }
spark_job() { spark run "$root/tests/cluster/spark_jobs.py" "$@"; }
spark_check() { "$python" "$root/tests/cluster/spark_check.py" "$@"; }

part_spark() {
    has_spark || return 0
    expect 0 spark-up.log spark up
    spark_check make table.csv
    expect 0 put.log hadoop fs -put -f "$work/table.csv" /table.csv
    expect 0 spark.log spark_job words /in /spark/words
    hadoop fs -cat '/spark/words/part*' 2>fs.log | "$python" "$recipes/hadoop/words.py" check text
    expect 0 spark.log spark_job sort /in /spark/sort
    hadoop fs -cat '/spark/sort/part*' 2>fs.log | spark_check sort text
    expect 0 spark.log spark_job table /table.csv /spark/table
    hadoop fs -cat '/spark/table/part*' 2>fs.log | spark_check table table.csv
    spark_check local csd-array/spark/events
    done_with "Spark: counts, order and aggregates are right, and tasks ran next to their blocks"
}

part_spark_lost() {
    has_spark || return 0
    expect 0 spark-up.log spark up
    local gates=/data/spark-gates job
    spark_job wait /in /spark/lost $gates >spark.log 2>&1 &
    job=$!
    until_seen "$job" in_drive d0 "ls $gates/waits-* >/dev/null 2>&1"
    until_seen "$job" in_drive d1 "ls $gates/waits-* >/dev/null 2>&1"
    in_drive d0 "touch $gates/open"
    in_drive d1 'pkill -KILL -f [Y]arnCoarseGrainedExecutorBackend'
    in_drive d1 "touch $gates/open"
    wait "$job"
    hadoop fs -cat '/spark/lost/part*' 2>fs.log | "$python" "$recipes/hadoop/words.py" check text
    spark_check lost csd-array/spark/events
    expect 0 spark-down.log spark down
    done_with "Spark: an executor is lost, its tasks are repeated, and every count is right"
}
