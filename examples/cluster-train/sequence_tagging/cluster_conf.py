"""What seed 003's cluster_conf_dwk.py was: where the data is, and which program learns to tag it."""

cluster_config(  # noqa: F821 - read by paddle cluster_train, and never run
    # In HDFS: fs_name="hdfs://host:port", fs_ugi="user,password", work_dir="/path/sequence_tagging/"
    work_dir="~/demos/sequence_tagging/",
    entry="python train.py",
)
