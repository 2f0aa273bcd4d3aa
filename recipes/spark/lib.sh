# Shared by the recipe of Spark: the Python that has PySpark, and the folder of the array.
. "$here/../lib.sh"
python=${SPARK_PYTHON:-python3}

# Sets `spark_home` and `version` to those of the PySpark of $SPARK_PYTHON.
find_spark() {
    command -v "$python" >/dev/null || fail 2 "no $python: name a Python with \$SPARK_PYTHON"
    python=$(command -v "$python")
    spark_home=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))' 2>/dev/null) ||
        fail 2 "$python has no PySpark (pip install 'pyspark>=3.5,<3.6', 345 MB)"
    version=$("$python" -c 'import pyspark; print(pyspark.__version__)')
    [[ $version = 3.5.* ]] || fail 2 "PySpark $version: the recipe is for 3.5"
}
