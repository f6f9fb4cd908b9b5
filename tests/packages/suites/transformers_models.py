"""transformers' tests that are common to all models, from its source distribution, for BERT, GPT-2, Llama and T5.

The distribution has the tests, but not the files that apply them to a model: configurations and inputs are given here.
"""
import sys
import types
import unittest

# mixins that the tests derive from, and that the distribution leaves out
for place, name in (("exporters.test_export", "ExportTesterMixin"), ("generation.test_utils", "GenerationTesterMixin")):
    above, _, last = f"tests.{place}".rpartition(".")
    sys.modules[above], sys.modules[f"{above}.{last}"] = types.ModuleType(above), types.ModuleType(f"{above}.{last}")
    setattr(sys.modules[f"{above}.{last}"], name, type(name, (), {}))

import torch  # noqa: E402
import transformers as tf  # noqa: E402

from tests.test_modeling_common import ModelTesterMixin, ids_tensor, random_attention_mask  # noqa: E402

SMALL = {"vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "gelu",
         "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}


class Tester:
    """A small configuration, and inputs for it."""

    batch_size, seq_length, is_training, num_choices, num_labels = 5, 7, True, 4, 3
    hidden_size, num_hidden_layers, num_attention_heads, vocab_size = 32, 2, 4, 99

    def __init__(self, test, config):
        self.parent, self.config = test, config

    def get_config(self):
        return self.config()

    def prepare_config_and_inputs_for_common(self):
        ids = ids_tensor([self.batch_size, self.seq_length], self.vocab_size)
        inputs = {"input_ids": ids, "attention_mask": random_attention_mask([self.batch_size, self.seq_length])}
        config = self.config()
        if config.is_encoder_decoder:
            inputs |= {"decoder_input_ids": ids_tensor([self.batch_size, self.seq_length], self.vocab_size),
                       "decoder_attention_mask": inputs["attention_mask"].clone()}
        return config, inputs


class Model(ModelTesterMixin):
    all_model_classes, config = (), None

    test_generation_tester_mixin_inheritance = None         # of a mixin that the distribution leaves out

    def setUp(self):
        self.model_tester = Tester(self, self.config)


class BertTest(Model, unittest.TestCase):
    all_model_classes = (tf.BertModel, tf.BertForMaskedLM, tf.BertForMultipleChoice, tf.BertForNextSentencePrediction,
                         tf.BertForPreTraining, tf.BertForQuestionAnswering, tf.BertForSequenceClassification,
                         tf.BertForTokenClassification, tf.BertLMHeadModel)

    def _prepare_for_class(self, inputs_dict, model_class, return_labels=False):
        inputs = super()._prepare_for_class(inputs_dict, model_class, return_labels)
        if return_labels and model_class is tf.BertForPreTraining:
            labels = torch.zeros_like(inputs["input_ids"])
            inputs |= {"labels": labels, "next_sentence_label": labels[:, 0]}
        return inputs

    def config(self=None):
        return tf.BertConfig(max_position_embeddings=64, **SMALL)


class GPT2Test(Model, unittest.TestCase):
    all_model_classes = (tf.GPT2Model, tf.GPT2LMHeadModel, tf.GPT2ForQuestionAnswering,
                         tf.GPT2ForSequenceClassification, tf.GPT2ForTokenClassification)

    def config(self=None):
        return tf.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=37, pad_token_id=0,
                             bos_token_id=1, eos_token_id=2)


class LlamaTest(Model, unittest.TestCase):
    all_model_classes = (tf.LlamaModel, tf.LlamaForCausalLM, tf.LlamaForSequenceClassification,
                         tf.LlamaForQuestionAnswering, tf.LlamaForTokenClassification)

    def config(self=None):
        return tf.LlamaConfig(**SMALL | {"hidden_act": "silu", "num_key_value_heads": 2})


class T5Test(Model, unittest.TestCase):
    all_model_classes = (tf.T5Model, tf.T5ForConditionalGeneration, tf.T5ForQuestionAnswering)
    is_encoder_decoder = True

    def config(self=None):
        return tf.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, pad_token_id=0,
                           eos_token_id=2, decoder_start_token_id=0, relative_attention_num_buckets=8)


del Model, ModelTesterMixin
