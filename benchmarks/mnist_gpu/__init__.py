"""E8 on one GPU: MNIST with every training image and every network there is a file of.

    python -m benchmarks.mnist_gpu --data FOLDER --weights FOLDER [--networks alexnet,vgg16,...]

``--data`` holds ``mnist/*.gz``, ``--weights`` the ONNX files (they run on torch here, so no
onnxruntime is needed). Needs torch, NumPy, SciPy and scikit-learn. Tables go to the folder named
by the variable OUT, or by ``--out``: ``results.csv`` (rewritten after every digit), ``weights.npz``
(the lp MK-FN weights) and ``log.txt`` (averages). Features are kept in ``--scratch``, so that a
second call with one more network extracts that one only::

    python -m benchmarks.mnist_gpu --data data --weights four --scratch /dev/shm/mnist
    python -m benchmarks.mnist_gpu --data data --weights two --scratch /dev/shm/mnist \\
        --networks alexnet,squeezenet1_1,mobilenet_v2,efficientnet_lite0,vgg16,inception_v3

What is finished after ``--limit`` seconds (540 by default) is written and the rest is left.
A task that finds the GPU's memory full is put back to the end of the queue, once.

Protocol, that of `experiments.e8`, fixed before the run. The training images of each digit
are shuffled by a seed of its own; the first 90 % of the target digit train, the last 10 % and a
hundred of each other digit validate; the whole test set tests. Features are signed square roots
of unit length. Everything is chosen by validation AUC and nothing is refitted. ``--regions`` adds
kernels of four overlapping quarters of each image for the small networks, as methods of their own;
lines "(networks chosen)" fuse the best k networks by their validation AUC alone, k chosen likewise.
Peers see all scaled features side by side: neighbours, the Mahalanobis distance, the local outlier
factor and scikit-learn's isolation forest. The methods on SVMs have the first thousand images.
"""
