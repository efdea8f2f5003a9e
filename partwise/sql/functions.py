"""What lifting must know about functions: which ones aggregate, and which depend on the order of rows."""

from __future__ import annotations

_AGGREGATES = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
    array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or
    collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every first first_value
    grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value
    listagg max max_by mean measure median min min_by mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg
    theta_sketch_agg theta_union_agg tuple_sketch_agg_double tuple_sketch_agg_integer try_avg try_sum var_pop
    var_samp variance vector_avg vector_sum
"""
AGGREGATES = frozenset(_AGGREGATES.split())
_BY_ORDER = """
    any_value approx_top_k array_agg collect_list collect_set first first_value last last_value listagg mode
    string_agg
"""
#: Aggregates whose result follows the order in which rows come, which many parts at once may change.
BY_ORDER = frozenset(_BY_ORDER.split())
#: Around these the order of a list no longer counts.
SORTING = frozenset(["array_sort", "sort_array"])
