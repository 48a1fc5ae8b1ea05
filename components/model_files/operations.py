"""The operations that a model of others may contain: they compute on tensors, and reach nothing outside of the model.

A graph is checked against this table before TensorFlow loads it. What is not listed is refused, so an operation of a
later TensorFlow or of a plugin is refused until somebody has looked at it and named it here. Not listed are, among
others, operations that read or write files, print, sleep, run Python, open sockets, talk to other processes or
devices, reach resources of other programs by name, or load other graphs. `tests/components/model_files` looks
at each registered operation, its arguments and attributes, for names of such things.
"""

from __future__ import annotations

_GROUPS = {
    "numbers": """
        Abs AccumulateNV2 Acos Acosh Add AddN AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BesselI0
        BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Betainc
        Bitcast BitwiseAnd BitwiseOr BitwiseXor Cast Ceil ClipByValue Complex ComplexAbs Conj Cos Cosh Cross Dawsn
        Digamma Div DivNoNan Equal Erf Erfc Erfinv Exp Expint Expm1 Floor FloorDiv FloorMod FresnelCos FresnelSin
        Greater GreaterEqual Igamma Igammac IgammaGradA Imag Inv Invert IsFinite IsInf IsNan LeftShift Less LessEqual
        Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual
        Polygamma PopulationCount Pow Real RealDiv Reciprocal RightShift Rint Round Rsqrt Sigmoid Sign Sin Sinh Spence
        Sqrt Square SquaredDifference Sub Tan Tanh TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
    """,
    "reductions and order": """
        All Any ApproxTopK ArgMax ArgMin Bincount Bucketize Cumprod Cumsum CumulativeLogsumexp DenseBincount
        EuclideanNorm HistogramFixedWidth InTopK InTopKV2 LogSoftmax LowerBound Max Mean Min NthElement Prod
        RaggedBincount SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd SegmentProdV2
        SegmentSum SegmentSumV2 Softmax SparseBincount Sum TopK TopKV2 Unique UniqueV2 UniqueWithCounts
        UniqueWithCountsV2 UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum UpperBound
    """,
    "matrices and transforms": """
        BandedTriangularSolve BatchMatMul BatchMatMulV2 BatchMatMulV3 Cholesky Einsum FFT FFT2D FFT3D IFFT IFFT2D
        IFFT3D IRFFT IRFFT2D IRFFT3D LinSpace LogMatrixDeterminant Lu MatMul MatrixBandPart MatrixDeterminant
        MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixExponential
        MatrixInverse MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MatrixSolve MatrixSolveLs MatrixSquareRoot
        MatrixTriangularSolve Qr RFFT RFFT2D RFFT3D SelfAdjointEigV2 Svd TridiagonalMatMul TridiagonalSolve
    """,
    "shapes": """
        BatchToSpace BatchToSpaceND BroadcastArgs BroadcastGradientArgs BroadcastTo Concat ConcatOffset ConcatV2
        ConjugateTranspose DepthToSpace Diag DiagPart DynamicPartition DynamicStitch Empty EnsureShape ExpandDims
        ExtractImagePatches ExtractVolumePatches Fill Gather GatherNd GatherV2 Identity IdentityN InvertPermutation
        ListDiff MirrorPad OneHot OnesLike Pack Pad PadV2 ParallelConcat ParallelDynamicStitch PreventGradient Range
        Rank Reshape Reverse ReverseSequence ReverseV2 Roll ScatterNd ScatterNdNonAliasingAdd Select SelectV2 Shape
        ShapeN Size Slice Snapshot SpaceToBatch SpaceToBatchND SpaceToDepth Split SplitV Squeeze StopGradient
        StridedSlice TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
        TensorStridedSliceUpdate Tile Transpose Unpack UnravelIndex Where ZerosLike
    """,
    "networks": """
        AvgPool AvgPool3D BatchNormWithGlobalNormalization BiasAdd BiasAddV1 Conv Conv2D Conv2DBackpropInput
        Conv2DBackpropInputV2 Conv3D Conv3DBackpropInputV2 DataFormatDimMap DataFormatVecPermute DepthwiseConv2dNative
        Dilation2D Elu FractionalAvgPool FractionalMaxPool FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3
        GRUBlockCell L2Loss LeakyRelu LRN LSTMBlockCell MaxPool MaxPool3D MaxPoolV2 MaxPoolWithArgmax Relu Relu6 Selu
        SoftmaxCrossEntropyWithLogits Softplus Softsign SparseSoftmaxCrossEntropyWithLogits
    """,
    "gradients of the above, for models that differentiate in their signature": """
        AvgPool3DGrad AvgPoolGrad BiasAddGrad Conv2DBackpropFilter Conv3DBackpropFilterV2
        DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput EluGrad FusedBatchNormGrad
        FusedBatchNormGradV2 FusedBatchNormGradV3 InvGrad LeakyReluGrad LRNGrad MaxPool3DGrad MaxPoolGrad
        MaxPoolGradV2 MaxPoolGradWithArgmax MirrorPadGrad ReciprocalGrad Relu6Grad ReluGrad ResizeBicubicGrad
        ResizeBilinearGrad ResizeNearestNeighborGrad RsqrtGrad ScaleAndTranslateGrad SeluGrad SigmoidGrad SoftplusGrad
        SoftsignGrad SqrtGrad StridedSliceGrad TanhGrad
    """,
    "quantization": """
        Dequantize FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel
        QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 QuantizeV2
    """,
    "images, from bytes in memory": """
        AdjustContrastv2 AdjustHue AdjustSaturation CombinedNonMaxSuppression CropAndResize DecodeAndCropJpeg
        DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng DrawBoundingBoxesV2 EncodeJpeg EncodeJpegVariableQuality
        EncodePng ExtractGlimpseV2 ExtractJpegShape HSVToRGB ImageProjectiveTransformV2 ImageProjectiveTransformV3
        NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 ResizeArea
        ResizeBicubic ResizeBilinear ResizeNearestNeighbor RGBToHSV ScaleAndTranslate
    """,
    "texts and bytes in memory": """
        AsString DecodeBase64 DecodeCompressed DecodeCSV DecodePaddedRaw DecodeRaw EditDistance EncodeBase64
        Fingerprint ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample
        ParseTensor ReduceJoin RegexFullMatch RegexReplace SerializeTensor StaticRegexFullMatch StaticRegexReplace
        StringFormat StringJoin StringLength StringLower StringNGrams StringSplit StringSplitV2 StringStrip
        StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper Substr
        UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode UnsortedSegmentJoin
    """,
    "ragged and sparse tensors": """
        DeserializeSparse RaggedGather RaggedRange RaggedTensorFromVariant RaggedTensorToSparse RaggedTensorToTensor
        RaggedTensorToVariant SerializeSparse SparseAdd SparseConcat SparseCross SparseCrossV2 SparseDenseCwiseAdd
        SparseDenseCwiseDiv SparseDenseCwiseMul SparseFillEmptyRows SparseReduceMax SparseReduceSum SparseReorder
        SparseReshape SparseSegmentMean SparseSegmentMeanWithNumSegments SparseSegmentSqrtN
        SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumWithNumSegments SparseSlice SparseSoftmax
        SparseSplit SparseTensorDenseAdd SparseTensorDenseMatMul SparseToDense
    """,
    "random numbers": """
        Multinomial ParameterizedTruncatedNormal RandomGamma RandomIndexShuffle RandomPoissonV2 RandomShuffle
        RandomStandardNormal RandomUniform RandomUniformInt RngReadAndSkip RngSkip StatefulStandardNormalV2
        StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt StatelessMultinomial
        StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2 StatelessRandomGammaV3
        StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg StatelessRandomNormal
        StatelessRandomNormalV2 StatelessRandomPoisson StatelessRandomUniform StatelessRandomUniformFullInt
        StatelessRandomUniformFullIntV2 StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2
        StatelessShuffle StatelessTruncatedNormal StatelessTruncatedNormalV2 TruncatedNormal
    """,
    "functions and control flow, whose functions are walked, too": """
        Case Enter Exit FakeParam For If LoopCond MapDefun Merge NextIteration PartitionedCall StatefulPartitionedCall
        StatelessCase StatelessIf StatelessWhile Switch SymbolicGradient While
    """,
    "constants, inputs and order of execution": """
        Assert Const ControlTrigger NoOp Placeholder PlaceholderV2 PlaceholderWithDefault
    """,
    "lists of tensors": """
        EmptyTensorList EmptyTensorMap OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone
        TensorArrayCloseV3 TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayGradV3 TensorArrayReadV3
        TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3 TensorArrayV3 TensorArrayWriteV3 TensorListConcat
        TensorListConcatLists TensorListConcatV2 TensorListElementShape TensorListFromTensor TensorListGather
        TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch
        TensorListReserve TensorListResize TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2
        TensorListSetItem TensorListSplit TensorListStack TensorMapErase TensorMapHasKey TensorMapInsert
        TensorMapLookup TensorMapSize TensorMapStackKeys
    """,
    "pipelines of tensors in memory": """
        BatchDatasetV2 ConcatenateDataset DatasetToSingleElement IgnoreErrorsDataset MapDataset TensorDataset
        TensorSliceDataset
    """,
    "variables of the model": """
        AssignAddVariableOp AssignSubVariableOp AssignVariableOp DestroyResourceOp DisableCopyOnRead ReadVariableOp
        ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin
        ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub
        ResourceScatterUpdate ResourceStridedSliceAssign VarHandleOp VariableShape VarIsInitializedOp
    """,
    "tables with values in the graph": """
        AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors
        HashTableV2 InitializeTableV2 LookupTableExportV2 LookupTableFindV2 LookupTableImportV2 LookupTableInsertV2
        LookupTableRemoveV2 LookupTableSizeV2 MutableDenseHashTableV2 MutableHashTableOfTensorsV2 MutableHashTableV2
    """,
}

# Later TensorFlows have these in addition to the ones of the fallback stack.
LATER = frozenset(["DecodeWebP"])

ALLOWED = frozenset(name for group in _GROUPS.values() for name in group.split()) | LATER
# Allowed where the file is an asset of the model, see `saved_model`.
OF_ASSETS = frozenset(["InitializeTableFromTextFileV2"])
# Allowed in the function that a loader restores the variables with, and with the path that the loader gives.
OF_RESTORE = frozenset(["RestoreV2"])
# Allowed in the function that saves variables, which no loader runs.
OF_SAVE = frozenset(["MergeV2Checkpoints", "SaveV2", "ShardedFilename"])
